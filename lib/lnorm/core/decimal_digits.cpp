#include "lnorm/core/decimal_digits.hpp"

#include <bit>
#include <cstdlib>
#include <cstring>

namespace lnorm {

namespace {

constexpr auto kPairs = [] {  // 00 to 99
  std::array<char, 200> pairs{};
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    pairs[i] = static_cast<char>('0' + (i % 2 == 0 ? i / 20 : i / 2 % 10));
  }
  return pairs;
}();

void put_pair(std::uint64_t number, char* to) noexcept { std::memcpy(to, &kPairs[2 * number], 2); }

}  // namespace

int digits_of(std::uint64_t number) noexcept {
  const int bits = static_cast<int>(std::bit_width(number));
  const auto least = static_cast<std::size_t>((bits * 1233) >> 12);  // log10(2) is 1233 / 4096
  return static_cast<int>(least) + (number >= kPowersOfTen[least] ? 1 : 0);
}

// Eight at a time do not wait for each other.
char* put_digits(std::uint64_t number, int count, char* to) noexcept {
  char* const end = to + count;
  char* at = end;
  for (; count >= 8; count -= 8) {
    const std::uint64_t last = number % 100'000'000;
    number /= 100'000'000;
    at -= 8;
    put_pair(last / 1'000'000, at);
    put_pair(last / 10'000 % 100, at + 2);
    put_pair(last / 100 % 100, at + 4);
    put_pair(last % 100, at + 6);
  }
  for (; count >= 2; count -= 2) {
    at -= 2;
    put_pair(number % 100, at);
    number /= 100;
  }
  if (count == 1) *to = static_cast<char>('0' + number);
  return end;
}

char* put_with_point(std::uint64_t number, int count, int behind_point, char* to) noexcept {
  if (behind_point == 0) return put_digits(number, count, to);
  const std::uint64_t one = kPowersOfTen[static_cast<std::size_t>(behind_point)];
  to = put_digits(number / one, count - behind_point, to);
  *to++ = '.';
  return put_digits(number % one, behind_point, to);
}

char* put_exponent(int exponent, char* to) noexcept {
  const int size = std::abs(exponent);
  *to++ = 'e';
  *to++ = exponent < 0 ? '-' : '+';
  return put_digits(static_cast<std::uint64_t>(size), size < 100 ? 2 : 3, to);
}

}  // namespace lnorm
