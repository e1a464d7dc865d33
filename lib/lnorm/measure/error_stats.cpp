#include "lnorm/measure/error_stats.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>

#include "lnorm/core/dtype_table.hpp"
#include "lnorm/core/non_finite.hpp"
#include "lnorm/core/processors.hpp"

namespace lnorm {

namespace {

// Each lane sums every eighth term, so that the compiler can keep lanes in vectors. A lane has at most 128
// terms of a chunk: where none is negative, plain doubles are off by less than 128 * 2^-53.
constexpr std::int64_t kLanes = 8;
static_assert(kChunk / kLanes == 128);

// The sum of term(0) to term(count - 1), none of them negative.
template <class Term>
double sum_of(std::int64_t count, Term term) {
  double lanes[kLanes]{};
  const std::int64_t whole = count / kLanes * kLanes;
  for (std::int64_t i = 0; i < whole; i += kLanes) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] += term(i + lane);
  }
  double sum = 0;
  for (std::int64_t i = whole; i < count; ++i) sum += term(i);
  for (const double lane : lanes) sum += lane;
  return sum;
}

// Sums terms that are pairs of doubles, and may cancel: the error is that of double-doubles.
// [Ogita, Rump, Oishi 2005, "Accurate sum and dot product", algorithms 4.4 and 5.3]
template <class Term>
DoubleDouble exact_sum_of(std::int64_t count, Term term) {
  double high[kLanes]{};
  double low[kLanes]{};
  const std::int64_t whole = count / kLanes * kLanes;
  for (std::int64_t i = 0; i < whole; i += kLanes) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) {
      const DoubleDouble next = term(i + lane);
      const DoubleDouble sum = two_sum(high[lane], next.high);
      high[lane] = sum.high;
      low[lane] += sum.low + next.low;
    }
  }
  DoubleDouble sum;
  for (std::int64_t i = whole; i < count; ++i) sum = sum + term(i);
  for (std::int64_t lane = 0; lane < kLanes; ++lane) {
    sum = sum + two_sum(high[lane], low[lane]);
  }
  return sum;
}

bool is_wide(DType dtype) {
  return is_floating(dtype) && float_format(dtype).least_exponent < -400;
}

// Products of numbers of these dtypes have no more bits than a double.
bool has_exact_products(DType a, DType b) {
  return is_floating(a) && is_floating(b) &&
         float_format(a).precision + float_format(b).precision <=
             std::numeric_limits<double>::digits;
}

// A sum of squares without overflow, and without underflow that counts. NaN is not.
bool is_ordinary(double squares) { return squares >= 0x1p-700 && squares <= 0x1p900; }

// actual - expected, exactly: high is the nearest double.
void find_differences(const Chunk& a, const Chunk& e, std::int64_t count, bool lows, Chunk& d) {
  for (std::int64_t i = 0; i < count; ++i) {
    const DoubleDouble difference = two_sum(a.high[i], -e.high[i]);
    d.high[i] = difference.high;
    d.low[i] = difference.low;
  }
  if (!lows) return;
  for (std::int64_t i = 0; i < count; ++i) {
    const DoubleDouble difference =
        DoubleDouble{d.high[i], d.low[i]} + DoubleDouble{a.low[i], 0} + DoubleDouble{-e.low[i], 0};
    d.high[i] = difference.high;
    d.low[i] = difference.low;
  }
}

// Numbers divided by a power of two, so that the greatest is at least 1 and less than 2. They are finite.
int scale(std::int64_t count, double* numbers) {
  double greatest = 0;
  for (std::int64_t i = 0; i < count; ++i) greatest = std::max(greatest, std::fabs(numbers[i]));
  if (greatest == 0) return 0;
  const int exponent = std::ilogb(greatest);
  for (std::int64_t i = 0; i < count; ++i) numbers[i] = std::ldexp(numbers[i], -exponent);
  return exponent;
}

// Sums differences, of which those beyond the range of a double are infinite.
int scale_differences(const Chunk& a, const Chunk& e, std::int64_t count, Chunk& d) {
  const auto half = [&](std::int64_t i) { return two_sum(a.high[i] / 2, -e.high[i] / 2); };
  int exponent = std::numeric_limits<int>::min();
  for (std::int64_t i = 0; i < count; ++i) {
    if (d.high[i] == 0) continue;
    exponent = std::max(
        exponent, std::isfinite(d.high[i]) ? std::ilogb(d.high[i]) : std::ilogb(half(i).high) + 1);
  }
  if (exponent == std::numeric_limits<int>::min()) return 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const bool is_finite = std::isfinite(d.high[i]);
    const DoubleDouble difference = is_finite ? DoubleDouble{d.high[i], d.low[i]} : half(i);
    const int shift = (is_finite ? 0 : 1) - exponent;
    d.high[i] = std::ldexp(difference.high, shift);
    d.low[i] = std::ldexp(difference.low, shift);
  }
  return exponent;
}

double with_sign_of(double number, double other) {
  constexpr auto kSign = std::uint64_t{1} << 63;
  const std::uint64_t sign = std::bit_cast<std::uint64_t>(other) & kSign;
  return std::bit_cast<double>(std::bit_cast<std::uint64_t>(number) ^ sign);
}

// Splits the way from expected to actual, which is expected + error: the part toward zero, and the part away from it.
// Without a branch, so that the compiler takes several at once.
double toward_zero(double expected, double error) {
  return std::min(std::max(-with_sign_of(error, expected), 0.0), std::fabs(expected));
}
double away_from_zero(double actual, double expected, double error) {
  return std::max(with_sign_of(error, expected), 0.0) +
         std::max(-with_sign_of(actual, expected), 0.0);
}

// How many i there are of which is(i): summed as the terms above, which compilers make fast.
template <class Is>
std::int64_t count_of(std::int64_t count, Is is) {
  return static_cast<std::int64_t>(
      sum_of(count, [&](std::int64_t i) { return is(i) ? 1.0 : 0.0; }));
}

// The dtypes of which squares are summed as they lie in memory.
double number_of(double element) { return element; }
double number_of(float element) { return element; }
double number_of(BFloat16 element) { return to_double(element); }
double number_of(Float16 element) { return to_double(element); }

// The sum of the squares of elements that lie as a C++ type T in memory.
template <class T>
double sum_of_squares(const std::byte* data, std::int64_t count) {
  return sum_of(count, [data](std::int64_t i) {
    T element;
    std::memcpy(&element, data + i * static_cast<std::int64_t>(sizeof element), sizeof element);
    const double number = number_of(element);
    return number * number;
  });
}

// The same of at most a chunk of float16, in half the time; nothing where one is neither 0 nor normal. The bits of a half,
// moved up, are those of a float that is 2^112 times smaller.
std::optional<double> sum_of_normal_squares(const std::byte* data, std::int64_t count) {
  std::uint16_t bits[kChunk];
  float squares[kChunk];
  std::memcpy(bits, data, static_cast<std::size_t>(count) * sizeof *bits);
  std::uint16_t others = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto size = static_cast<std::uint16_t>(bits[i] & 0x7fff);
    const bool is_normal = static_cast<std::uint16_t>(size - 0x400) < 0x7800;
    others = static_cast<std::uint16_t>(others | (size != 0 && !is_normal ? 1 : 0));
    const float number = std::bit_cast<float>(std::uint32_t{size} << 13) * 0x1p112F;
    squares[i] = number * number;
  }
  if (others != 0) return std::nullopt;
  return sum_of(count, [&](std::int64_t i) { return static_cast<double>(squares[i]); });
}

// Returns nothing for elements that must be decoded first.
std::optional<double> sum_of_squares(const RawElements& elements) {
  const bool is_native = elements.byte_order == std::endian::native;
  if (!is_native || elements.dtype == DType::float64_pair) return std::nullopt;
  return visit(elements.dtype, [&]<class T>(T) -> std::optional<double> {
    if constexpr (std::is_same_v<T, Float16>) {
      if (const auto squares = sum_of_normal_squares(elements.data, elements.count)) return squares;
    }
    if constexpr (requires(T element) { number_of(element); }) {
      return sum_of_squares<T>(elements.data, elements.count);
    }
    return std::nullopt;
  });
}

}  // namespace

// The sums of a chunk, divided by powers of two, of which these are the exponents.
struct ErrorStats::Sums {
  // The sums of these parts of errors.
  struct Parts {
    double toward = 0;
    double away = 0;

    double absolute() const { return toward + away; }
  };

  static Parts parts_of(const Chunk& a, const Chunk& e, const Chunk& d, std::int64_t count) {
    const double* const actuals = a.high;
    const double* const expecteds = e.high;
    const double* const differences = d.high;
    return {
        sum_of(count, [=](std::int64_t i) { return toward_zero(expecteds[i], differences[i]); }),
        sum_of(count, [=](std::int64_t i) {
          return away_from_zero(actuals[i], expecteds[i], differences[i]);
        })};
  }

  DoubleDouble error;
  Parts parts;
  double squared = 0;
  double actual = 0;
  double expected = 0;
  DoubleDouble product;
  int error_exponent = 0;
  int actual_exponent = 0;
  int expected_exponent = 0;

  Sums(const Chunk& a, const Chunk& e, const Chunk& d, std::int64_t count, const Parts& of_errors,
       bool exact_products)
      : parts(of_errors) {
    const double* const actuals = a.high;
    const double* const expecteds = e.high;
    const double* const differences = d.high;
    const double* const rests = d.low;
    const auto square_of = [](const double* numbers) {
      return [numbers](std::int64_t i) { return numbers[i] * numbers[i]; };
    };
    expected = sum_of(count, square_of(expecteds));
    if (parts.absolute() == 0) {
      all_equal();
      return;
    }
    squared = sum_of(count, square_of(differences));
    actual = sum_of(count, square_of(actuals));
    error = exact_sum_of(count, [=](std::int64_t i) {
      return DoubleDouble{differences[i], rests[i]};
    });
    if (exact_products) {
      product = exact_sum_of(count, [=](std::int64_t i) {
        return DoubleDouble{actuals[i] * expecteds[i], 0};
      });
    } else {
      product = exact_sum_of(count,
                             [=](std::int64_t i) { return two_product(actuals[i], expecteds[i]); });
    }
  }

  // The cosine of numbers that are equal needs the sum of their squares alone.
  explicit Sums(double squares) : expected(squares) { all_equal(); }

  // narrow: no square of another number than 0 is 0.
  bool are_ordinary(bool narrow) const {
    const auto is_sum = [&](double squares) {
      return is_ordinary(squares) || (narrow && squares == 0);
    };
    return is_sum(actual) && is_sum(expected) && (parts.absolute() == 0 || is_sum(squared));
  }

 private:
  void all_equal() {
    actual = expected;
    product = {expected, 0};
  }
};

LNORM_FOR_PROCESSORS
void ErrorStats::add(const Chunk& actual, const Chunk& expected, std::int64_t count,
                     DType actual_dtype, DType expected_dtype) {
  const bool lows = has_low(actual_dtype) || has_low(expected_dtype);
  const bool narrow = !is_wide(actual_dtype) && !is_wide(expected_dtype);
  Chunk d;
  find_differences(actual, expected, count, lows, d);
  const Sums sums(actual, expected, d, count, Sums::parts_of(actual, expected, d, count),
                  has_exact_products(actual_dtype, expected_dtype));
  if (!sums.are_ordinary(narrow)) return add_with_care(actual, expected, count, lows);
  add_counts(actual, expected, d, count);
  add_sums(sums);
}

void ErrorStats::add_with_care(const Chunk& actual, const Chunk& expected, std::int64_t count,
                               bool lows) {
  Chunk a = actual;
  Chunk e = expected;
  std::int64_t finite = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    if (!std::isfinite(actual.high[i]) || !std::isfinite(expected.high[i])) continue;
    a.high[finite] = actual.high[i];
    a.low[finite] = actual.low[i];
    e.high[finite] = expected.high[i];
    e.low[finite] = expected.low[i];
    ++finite;
  }
  Chunk d;
  find_differences(a, e, finite, lows, d);
  add_counts(a, e, d, finite);
  const Sums sums(a, e, d, finite, Sums::parts_of(a, e, d, finite), false);
  if (sums.are_ordinary(false)) return add_sums(sums);
  Chunk parts;  // toward zero, and away from it; none is beyond the range of a double
  for (std::int64_t i = 0; i < finite; ++i) {
    parts.high[i] = toward_zero(e.high[i], d.high[i]);
    parts.low[i] = away_from_zero(a.high[i], e.high[i], d.high[i]);
  }
  const int error_exponent = scale_differences(a, e, finite, d);
  const int actual_exponent = scale(finite, a.high);
  const int expected_exponent = scale(finite, e.high);
  const auto scaled_sum = [&](const double* numbers) {
    return sum_of(finite, [=](std::int64_t i) { return std::ldexp(numbers[i], -error_exponent); });
  };
  Sums scaled(a, e, d, finite, {scaled_sum(parts.high), scaled_sum(parts.low)}, false);
  scaled.error_exponent = error_exponent;
  scaled.actual_exponent = actual_exponent;
  scaled.expected_exponent = expected_exponent;
  add_sums(scaled);
}

void ErrorStats::add_counts(const Chunk& actual, const Chunk& expected, const Chunk& d,
                            std::int64_t count) {
  const std::int64_t equal =
      count_of(count, [high = d.high](std::int64_t i) { return high[i] == 0; });
  pairs_ += count;
  equal_numbers_ += equal;
  equal_bits_ += equal;
  if (equal == 0) return;
  equal_bits_ -= count_of(count, [a = actual.high, e = expected.high](std::int64_t i) {
    return a[i] == 0 && std::copysign(1.0, a[i]) + std::copysign(1.0, e[i]) == 0 && e[i] == 0;
  });
}

LNORM_FOR_PROCESSORS
void ErrorStats::add_same(const RawElements& elements) {
  const auto [data, count, dtype, byte_order] = elements;
  if (const auto squares = sum_of_squares(elements)) {
    const Sums sums(*squares);
    const bool all_zeros = *squares == 0 && !first_finite_not_zero(elements);
    if (all_zeros || sums.are_ordinary(!is_wide(dtype))) {
      pairs_ += count;
      equal_numbers_ += count;
      equal_bits_ += count;
      return add_sums(sums);
    }
  }
  Chunk chunk;
  std::fill_n(chunk.low, count, 0.0);
  load(data, dtype, byte_order, count, chunk);
  add(chunk, chunk, count, dtype, dtype);
}

void ErrorStats::append(const ErrorStats& next) {
  pairs_ += next.pairs_;
  equal_numbers_ += next.equal_numbers_;
  equal_bits_ += next.equal_bits_;
  error_.append(next.error_);
  toward_.append(next.toward_);
  away_.append(next.away_);
  squared_.append(next.squared_);
  actual_.append(next.actual_);
  expected_.append(next.expected_);
  product_.append(next.product_);
}

void ErrorStats::add_sums(const Sums& sums) noexcept {
  error_.add(sums.error, sums.error_exponent);
  toward_.add({sums.parts.toward, 0}, sums.error_exponent);
  away_.add({sums.parts.away, 0}, sums.error_exponent);
  squared_.add({sums.squared, 0}, 2 * sums.error_exponent);
  actual_.add({sums.actual, 0}, 2 * sums.actual_exponent);
  expected_.add({sums.expected, 0}, 2 * sums.expected_exponent);
  product_.add(sums.product, sums.actual_exponent + sums.expected_exponent);
}

std::optional<double> ErrorStats::mean_of(const ScaledSum& sum) const {
  if (pairs_ == 0) return std::nullopt;
  return sum.over(static_cast<double>(pairs_));
}

std::optional<double> ErrorStats::mean() const { return mean_of(error_); }

std::optional<double> ErrorStats::mean_absolute() const {
  ScaledSum absolute = toward_;
  absolute.append(away_);
  return mean_of(absolute);
}

std::optional<double> ErrorStats::mean_toward_zero() const { return mean_of(toward_); }

std::optional<double> ErrorStats::mean_away_from_zero() const { return mean_of(away_); }

std::optional<double> ErrorStats::root_mean_square() const {
  if (pairs_ == 0) return std::nullopt;
  const auto [factor, exponent] = squared_.parts();
  const int odd = exponent & 1;
  const double mean = std::ldexp(factor, odd) / static_cast<double>(pairs_);
  return std::ldexp(std::sqrt(mean), (exponent - odd) / 2);
}

std::optional<double> ErrorStats::cosine() const {
  const auto a = actual_.parts();
  const auto e = expected_.parts();
  if (a.factor == 0 || e.factor == 0) return std::nullopt;
  const auto product = product_.parts();
  const int exponent = a.exponent + e.exponent;
  const int odd = exponent & 1;
  const double norms = std::sqrt(std::ldexp(a.factor * e.factor, odd));
  const double cosine = std::ldexp(product.factor / norms, product.exponent - (exponent - odd) / 2);
  return std::clamp(cosine, -1.0, 1.0);
}

std::optional<double> ErrorStats::sqnr() const {
  if (pairs_ == 0) return std::nullopt;
  const auto signal = expected_.parts();
  const auto noise = squared_.parts();
  if (noise.factor == 0) return kInfinity;
  if (signal.factor == 0) return -kInfinity;
  const int exponent = signal.exponent - noise.exponent;
  const double ratio = signal.factor / noise.factor;
  if (std::abs(exponent) < 1000) return 10 * std::log10(std::ldexp(ratio, exponent));
  return 10 * (std::log10(ratio) + exponent * std::log10(2.0));
}

}  // namespace lnorm
