#include "lnorm/measure/unrounded_sum.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <iterator>
#include <limits>

#include "lnorm/core/number.hpp"

namespace lnorm {

namespace {

constexpr int kWordBits = 64;

// What words that go on with those of a negative number are, and of another one.
std::uint64_t sign_word(bool is_negative) { return is_negative ? ~std::uint64_t{0} : 0; }

}  // namespace

void UnroundedSum::add(double value, int exponent) {
  if (value == 0) return;
  constexpr int kFactorBits = std::numeric_limits<double>::digits;
  int own = 0;
  const double factor = std::frexp(value, &own);
  const auto digits = static_cast<std::int64_t>(std::ldexp(factor, kFactorBits));
  const int lowest = own + exponent - kFactorBits;
  const int shift = lowest & (kWordBits - 1);
  const auto bits = static_cast<UInt128>(Int128{digits}) << shift;
  const std::array<Word, 3> words{static_cast<Word>(bits), static_cast<Word>(bits >> kWordBits),
                                  sign_word(value < 0)};
  add_words((lowest - shift) / kWordBits, words);
}

void UnroundedSum::append(const UnroundedSum& next) {
  if (!next.words_.empty()) add_words(next.first_, next.words_);
}

void UnroundedSum::add_words(std::int64_t first, std::span<const Word> words) {
  const std::int64_t size = std::ssize(words);
  reach(first, first + size);
  Word carry = 0;
  for (std::int64_t i = first - first_; i < std::ssize(words_); ++i) {
    const std::int64_t own = std::min(i - (first - first_), size - 1);
    Word& word = words_[static_cast<std::size_t>(i)];
    const UInt128 sum = UInt128{word} + words[static_cast<std::size_t>(own)] + carry;
    word = static_cast<Word>(sum);
    carry = static_cast<Word>(sum >> kWordBits);
  }
  const bool is_negative = words_.back() >> (kWordBits - 1) != 0;
  if (words_.back() != sign_word(is_negative)) words_.push_back(sign_word(is_negative));
}

// Makes the words go from one up to another, at least.
void UnroundedSum::reach(std::int64_t begin, std::int64_t end) {
  if (words_.empty()) first_ = begin;
  const std::int64_t missing = std::max<std::int64_t>(first_ - begin, 0);
  words_.insert(words_.begin(), static_cast<std::size_t>(missing), 0);
  first_ -= missing;
  const Word sign = words_.empty() ? 0 : words_.back();
  words_.resize(std::max(words_.size(), static_cast<std::size_t>(end - first_)), sign);
}

UnroundedSum::Parts UnroundedSum::rounded() const {
  std::vector<Word> size = words_;
  const bool is_negative = !size.empty() && size.back() != 0;
  Word carry = is_negative ? 1 : 0;
  for (Word& word : size) {
    if (is_negative) word = ~word + carry;
    carry = carry != 0 && word == 0 ? 1 : 0;
  }
  const auto top = std::find_if(size.rbegin(), size.rend(), [](Word word) { return word != 0; });
  if (top == size.rend()) return {0, 0};
  // The leading 64 bits, of which the last is set if there are more: so they are rounded as all would be.
  const int zeros = std::countl_zero(*top);
  const auto below = std::next(top);
  Word leading = *top << zeros;
  bool has_more = false;
  if (below != size.rend()) {
    if (zeros > 0) leading |= *below >> (kWordBits - zeros);
    has_more = (*below << zeros) != 0 ||
               std::any_of(std::next(below), size.rend(), [](Word word) { return word != 0; });
  }
  const auto rounded = static_cast<double>(leading | (has_more ? 1 : 0));
  int exponent = 0;
  const double factor = std::frexp(is_negative ? -rounded : rounded, &exponent);
  const auto number = first_ + (size.rend() - top) - 1;
  return {factor, exponent + static_cast<int>(kWordBits * number) - zeros};
}

}  // namespace lnorm
