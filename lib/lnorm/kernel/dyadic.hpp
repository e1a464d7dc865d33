#pragma once

#include <algorithm>
#include <bit>
#include <boost/multiprecision/cpp_int.hpp>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

#include "lnorm/core/double_double.hpp"
#include "lnorm/core/non_finite.hpp"
#include "lnorm/core/number.hpp"
#include "lnorm/kernel/rounding.hpp"

// Exact numbers, and rounding of a number that is known by comparisons.
namespace lnorm {

// 1024 bits are held without allocation: more than any row of ordinary numbers needs.
using Integer = boost::multiprecision::number<
    boost::multiprecision::cpp_int_backend<1024, 0, boost::multiprecision::signed_magnitude,
                                           boost::multiprecision::unchecked>,
    boost::multiprecision::et_off>;

// significand * 2^exponent
struct Dyadic {
  Integer significand;
  std::int64_t exponent = 0;

  Dyadic() = default;
  Dyadic(Integer s, std::int64_t e) : significand(std::move(s)), exponent(e) {}
  explicit Dyadic(std::int64_t integer) : significand(integer) {}
  explicit Dyadic(double value) {
    if (value == 0) return;
    int e = 0;
    auto bits = static_cast<std::int64_t>(std::ldexp(std::frexp(value, &e), 53));
    const int zeros = std::countr_zero(static_cast<std::uint64_t>(bits));
    significand = bits >> zeros;
    exponent = e - 53 + zeros;
  }
  explicit Dyadic(Number value) : Dyadic(value.high) {
    if (value.low != 0) *this = *this + Dyadic(value.low);
  }

  int sign() const { return significand.sign(); }

  // Whether a look at the leading bits first (below) saves work.
  bool is_long() const { return boost::multiprecision::msb(significand) > 400; }

  // Numbers of which one is far larger than the other are told apart by that.
  std::int64_t magnitude() const {
    return static_cast<std::int64_t>(boost::multiprecision::msb(significand)) + exponent;
  }

  // Roughly, and within the range of doubles.
  double approximate() const {
    if (sign() == 0) return 0;
    const auto bits = static_cast<std::int64_t>(
        boost::multiprecision::msb(boost::multiprecision::abs(significand)));
    const std::int64_t shift = std::max<std::int64_t>(0, bits - 60);
    const Integer top = boost::multiprecision::abs(significand) >> static_cast<unsigned>(shift);
    const auto size = static_cast<double>(static_cast<std::uint64_t>(top));
    const auto scale = static_cast<int>(std::clamp<std::int64_t>(exponent + shift, -3000, 3000));
    return sign() * std::ldexp(size, scale);
  }

  // core/serialize.hpp calls it.
  template <class Archive>
  void serialize(Archive& archive) {
    bool is_negative = sign() < 0;
    std::vector<std::uint8_t> size;
    export_bits(boost::multiprecision::abs(significand), std::back_inserter(size), 8);
    archive(exponent, is_negative, size);
    import_bits(significand, size.begin(), size.end(), 8);
    if (is_negative) significand = -significand;
  }

  friend Dyadic operator+(const Dyadic& a, const Dyadic& b) {
    if (b.sign() == 0) return a;
    if (a.sign() == 0) return b;
    if (a.exponent > b.exponent) return b + a;
    return {a.significand + (b.significand << static_cast<unsigned>(b.exponent - a.exponent)),
            a.exponent};
  }
  friend Dyadic operator-(const Dyadic& a, const Dyadic& b) {
    return b.sign() == 0 ? a : a + Dyadic{-b.significand, b.exponent};
  }
  friend Dyadic operator*(const Dyadic& a, const Dyadic& b) {
    return {a.significand * b.significand, a.exponent + b.exponent};
  }
};

inline Dyadic square(const Dyadic& a) { return a * a; }
inline Dyadic negated(const Dyadic& a) { return {-a.significand, a.exponent}; }
inline Dyadic abs(const Dyadic& a) { return a.sign() < 0 ? negated(a) : a; }

// The sign of a - b, both positive.
inline int compare_positive(const Dyadic& a, const Dyadic& b) {
  const std::int64_t difference = a.magnitude() - b.magnitude();
  if (difference != 0) return difference < 0 ? -1 : 1;
  return (a - b).sign();
}

// The sign of a - b.
inline int compare(const Dyadic& a, const Dyadic& b) {
  if (a.sign() != b.sign()) return a.sign() < b.sign() ? -1 : 1;
  if (a.sign() == 0) return 0;
  return a.sign() > 0 ? compare_positive(a, b) : compare_positive(negated(b), negated(a));
}

// The leading 106 bits of a number that is not 0, without its sign: significand * 2^exponent.
struct Leading {
  DoubleDouble significand;
  std::int64_t exponent;

  explicit Leading(const Dyadic& value) {
    const Integer size = boost::multiprecision::abs(value.significand);
    const auto below = static_cast<std::int64_t>(boost::multiprecision::msb(size)) - 105;
    const Integer top = below >= 0 ? Integer(size >> static_cast<unsigned>(below))
                                   : Integer(size << static_cast<unsigned>(-below));
    const auto high = static_cast<std::uint64_t>(Integer(top >> 53));
    const auto low = static_cast<std::uint64_t>(Integer(top & ((std::uint64_t{1} << 53) - 1)));
    significand = fast_two_sum(std::ldexp(static_cast<double>(high), -52),
                               std::ldexp(static_cast<double>(low), -105));
    exponent = value.exponent + below + 105;
  }
  Leading(DoubleDouble s, std::int64_t e) : significand(s), exponent(e) {}

  friend Leading operator*(const Leading& a, const Leading& b) {
    return {a.significand * b.significand, a.exponent + b.exponent};
  }
};

// The sign of a - b, where the leading bits of at most six factors each tell it; otherwise 0. All of their errors together
// are less than 2^-95 of a significand, which is at most 2^6.
inline int compare(const Leading& a, const Leading& b) {
  const std::int64_t difference = a.exponent - b.exponent;
  if (difference > 10 || difference < -10) return difference < 0 ? -1 : 1;
  const double scale = std::ldexp(1.0, static_cast<int>(difference));
  const double rest = (a.significand * scale - b.significand).high;
  if (std::fabs(rest) <= 0x1p-75) return 0;
  return rest < 0 ? -1 : 1;
}

// The sign of p sqrt(a) + q sqrt(b), a and b 0 or more. Of terms whose signs differ the larger one decides, and so do their squares,
// p^2 a and q^2 b. Long ones are most often told apart by their leading bits.
inline int sign_of(const Dyadic& p, const Dyadic& a, const Dyadic& q, const Dyadic& b) {
  const int left = a.sign() == 0 ? 0 : p.sign();
  const int right = b.sign() == 0 ? 0 : q.sign();
  if (left == 0 || left == right) return right;
  if (right == 0) return left;
  if (a.is_long() || b.is_long()) {
    const Leading of_p(p);
    const Leading of_q(q);
    const int leading = compare(of_p * of_p * Leading(a), of_q * of_q * Leading(b));
    if (leading != 0) return left * leading;
  }
  return left * compare_positive(square(p) * a, square(q) * b);
}

// The number of an order nearest to v > 0, which is only known by compare_to(m), the sign of v - m. It is one of those
// from least to most, and, at best, about guess.
template <class Compare>
double nearest(const FloatOrder& order, std::int64_t least, std::int64_t most, std::int64_t guess,
               Compare compare_to) {
  const auto is_at_most = [&](std::int64_t index) {
    const FloatOrder::Parts p = order.parts(index);
    const int side = compare_to(Dyadic(Integer(2 * p.significand + 1), p.exponent - 1));
    return side < 0 || (side == 0 && index % 2 == 0);
  };
  // Away from the guess in growing steps, then by halves.
  if (least < most) {
    guess = std::clamp(guess, least, most - 1);
    const bool down = is_at_most(guess);
    (down ? most : least) = down ? guess : guess + 1;
    for (std::int64_t step = 1; least < most; step += std::min(step, most - least)) {
      const std::int64_t stride = std::min(step, most - least);
      const std::int64_t next = down ? most - stride : least + stride - 1;
      const bool at_most = is_at_most(next);
      (at_most ? most : least) = at_most ? next : next + 1;
      if (at_most != down) break;
    }
  }
  while (least < most) {
    const std::int64_t middle = least + (most - least) / 2;
    const bool at_most = is_at_most(middle);
    (at_most ? most : least) = at_most ? middle : middle + 1;
  }
  return order.value(least);
}

// The number of dtype nearest to a value v from least to most. Of v only the sign is known, and side_of(m), the sign of
// v - m. guess() is about |v|.
template <class Guess, class Side>
double nearest_between(DType dtype, double least, double most, int sign, Guess guess,
                       Side side_of) {
  if (sign == 0) return 0;
  const FloatOrder order(dtype);
  const std::int64_t first = order.index(std::max(0.0, sign < 0 ? -most : least));
  const std::int64_t last = order.index(sign < 0 ? -least : most);
  const std::int64_t start = last - first > 1 ? order.index(guess()) : first;
  const double result = nearest(order, first, last, start, [&](const Dyadic& m) {
    return sign * side_of(sign < 0 ? negated(m) : m);
  });
  return sign < 0 ? -result : result;
}

// value rounded once to dtype, to nearest, ties to even. Zero is +0.
inline double rounded(const Dyadic& value, DType dtype) {
  return nearest_between(
      dtype, -kInfinity, kInfinity, value.sign(), [&] { return std::fabs(value.approximate()); },
      [&](const Dyadic& m) { return compare(value, m); });
}

}  // namespace lnorm
