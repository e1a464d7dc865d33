#include "lnorm/kernel/quantize.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <utility>
#include <vector>

#include "lnorm/core/dtype_table.hpp"
#include "lnorm/kernel/row_normalizer.hpp"

namespace lnorm {

namespace {

// Room for a vector.
constexpr std::size_t kPadding = 64;

// Between these floats are normal on the way to a quotient.
constexpr double kLeastFloat = 0x1p-100;
constexpr double kMostFloat = 0x1p100;

constexpr double kSmallestFloat = 0x1p-149;

// a / b, both finite, rounded once.
double rounded_quotient(double a, double b, DType dtype) {
  const double quotient = a / b;
  const double rest = std::fma(-quotient, b, a);
  return rounded(DoubleDouble{quotient, rest / b}, dtype);
}

double up_to_power_of_two(double scale) {
  int exponent = 0;
  const double fraction = std::frexp(scale, &exponent);
  return std::ldexp(1.0, fraction == 0.5 ? exponent - 1 : exponent);
}

}  // namespace

double default_qmax(DType dtype) {
  return dtype == DType::int8 ? 127 : float_format(dtype).greatest;
}

double Quantization::scale(double quotient, bool is_zero) const {
  if (std::isnan(quotient)) return kNan;
  double scale = quotient;
  if (amax_min > 0) scale = std::max(scale, rounded_quotient(amax_min, qmax, DType::float32));
  if (std::isfinite(amax_max)) {
    scale = std::min(scale, rounded_quotient(amax_max, qmax, DType::float32));
  }
  if (is_zero && amax_min == 0) scale = scale_min > 0 ? scale_min : 1;
  scale = std::max(std::min(std::max(scale, scale_min), scale_max), kSmallestFloat);
  if (power_of_two && std::isfinite(scale)) {
    scale = up_to_power_of_two(scale);
    if (scale_dtype == DType::float8_e8m0fnu) scale = std::max(scale, 0x1p-127);
  }
  return rounded(scale, scale_dtype);
}

void LargestQuotient::take(const LargestQuotient& other) {
  is_zero = is_zero && other.is_zero;
  if (std::isnan(quotient) || other.quotient <= quotient) return;
  quotient = other.quotient;
}

// One row on its way.
class RowQuantizer::Row {
 public:
  Row(const RowQuantizer& quantizer, std::int64_t row_length, bool saves_statistics)
      : of_(quantizer),
        n_(row_length),
        saves_statistics_(saves_statistics),
        y_(static_cast<std::size_t>(row_length) + kPadding) {}

  // room: of the row's statistics.
  void read(const RowsIn& row, const RowNumbersOut& room) {
    const bool is_rounded = of_.rounded_.has_value();
    const Affine& first = is_rounded ? *of_.rounded_ : of_.last_;
    const RowSetting setting = RowSetting{of_.backend_,
                                          row.dtype,
                                          is_rounded ? of_.quantization_.rounding : DType::float32,
                                          n_,
                                          first,
                                          of_.formula_,
                                          saves_statistics_}
                                   .of_row(row.first_row);
    row_ = row;
    if (of_.given_ != nullptr) {
      normalizer_.emplace(setting, of_.given_->of(row.first_row));
    } else {
      normalizer_.emplace(setting, sample_of(row), [row](const auto& see) { see(row); });
      normalizer_->sum_up();
    }
    if (room.mean != nullptr) *room.mean = normalizer_->mean();
    if (room.rstd != nullptr) *room.rstd = normalizer_->rstd();
    if (room.variance != nullptr) *room.variance = normalizer_->variance();
    if (is_rounded) {
      // What is rounded is a row whose statistics are given: 0 and 1.
      rounded_.resize(static_cast<std::size_t>(n_) * item_size(setting.out));
      normalizer_->write(row, 0, {rounded_.data(), setting.out});
      row_ = {rounded_.data(), setting.out, std::endian::native, 1, n_, 0, row.first_row};
      const RowSetting last{of_.backend_, setting.out, DType::float32, n_, of_.last_, of_.formula_};
      normalizer_.emplace(last.of_row(row.first_row), SavedStatistics{{0}, {1}});
    }
    normalizer_->write(row_, 0, {reinterpret_cast<std::byte*>(y_.data()), DType::float32});
  }

  LargestQuotient largest(std::int64_t first, std::int64_t count) const {
    const Range range = range_of(first, count);
    const double most = std::max(std::fabs(range.min), std::fabs(range.max));
    const bool is_in_range = range.non_finite == 0 && most >= kLeastFloat;
    const bool has_bias = !of_.last_.bias().empty();
    LargestQuotient result;
    const std::size_t size = item_size(row_.dtype);
    const auto bytes_of = [&](std::int64_t i) {
      return row_.data + static_cast<std::size_t>(i) * size;
    };
    const std::byte* mean = nullptr;  // an x whose y is 0, whatever its weight
    for (std::int64_t i = first; i < first + count; ++i) {
      if (mean != nullptr && std::memcmp(bytes_of(i), mean, size) == 0) continue;
      // The largest is among those that are rounded to the largest float.
      if (is_in_range && std::fabs(static_cast<double>(y_[static_cast<std::size_t>(i)])) != most) {
        continue;
      }
      const LargestQuotient of_element = quotient(i);
      result.take(of_element);
      if (std::isnan(result.quotient)) break;
      const bool may_repeat = of_element.is_zero && !has_bias && range.non_finite == 0;
      if (may_repeat && normalizer_->is_mean(x(i))) mean = bytes_of(i);
    }
    return result;
  }

  void write(std::int64_t first, std::int64_t count, double scale, const RowsOut& q) {
    if (std::isnan(scale)) return fill(q, count, kNan);
    if (of_.backend_.table == nullptr || !(scale >= kLeastFloat && scale <= kMostFloat) ||
        range_of(first, count).non_finite > 0) {
      for (std::int64_t i = 0; i < count; ++i) {
        const double result = quantized(first + i, scale, q.dtype);
        store(&result, 1, q, i);
      }
      return;
    }
    const auto inverse = static_cast<float>(1 / scale);
    const Quotients quotients(*this, scale, q.dtype);
    of_.backend_.table->quantize({y_.data() + first, &inverse, true, first, count}, q, quotients);
  }

  // By scales of all elements.
  void write_by(const AffineTerm& scales, const AffineLayout& layout, const RowsOut& q) {
    if (scales.is_uniform()) return write(0, n_, scales.number(0).high, q);
    const std::int64_t first = layout.first(row_.first_row);
    for (std::int64_t i = 0; i < n_;) {
      const double scale = scales.number(layout.number(first, i)).high;
      const std::int64_t count = layout.run(i, n_);
      std::int64_t same = layout.repeat == 1 ? 1 : count;
      while (same < count && scales.number(layout.number(first, i + same)).high == scale) ++same;
      write(i, same, scale, row_of(q, 1, i));
      i += same;
    }
  }

 private:
  // Results that the kernels leave undecided.
  class Quotients final : public Resolver {
   public:
    Quotients(const Row& row, double scale, DType dtype)
        : row_(row), scale_(scale), dtype_(dtype) {}
    double resolve(std::int64_t index, Number) const override {
      return row_.quantized(index, scale_, dtype_);
    }

   private:
    const Row& row_;
    double scale_;
    DType dtype_;
  };

  // Of y as floats.
  Range range_of(std::int64_t first, std::int64_t count) const {
    const RowsIn floats{reinterpret_cast<const std::byte*>(y_.data() + first), DType::float32,
                        std::endian::native, 1, count};
    const KernelTable* const table = of_.backend_.table;
    return table != nullptr ? table->range(floats) : range_one_by_one(floats);
  }

  Number x(std::int64_t i) const { return element_of(row_, i); }

  double quantized(std::int64_t i, double scale, DType dtype) const {
    const Number x = this->x(i);
    if (!normalizer_->has_number(i, x)) return kNan;
    if (!std::isinf(scale)) return normalizer_->resolve(i, x, {scale, dtype});
    return std::copysign(0.0, normalizer_->resolve(i, x, {1, DType::float32}));
  }

  LargestQuotient quotient(std::int64_t i) const {
    const Number x = this->x(i);
    if (!normalizer_->has_number(i, x)) return {kNan, false};
    const double quotient = normalizer_->resolve(i, x, {of_.quantization_.qmax, DType::float32});
    LargestQuotient result{std::fabs(quotient)};
    result.is_zero = result.quotient == 0 && normalizer_->is_zero(i, x);
    return result;
  }

  const RowQuantizer& of_;
  std::int64_t n_;
  bool saves_statistics_;
  std::vector<float> y_;
  std::vector<std::byte> rounded_;
  RowsIn row_{};
  std::optional<RowNormalizer> normalizer_;
};

RowQuantizer::RowQuantizer(const Backend& backend, const GivenStatistics* given, Affine affine,
                           const Formula& formula, const Quantization& quantization,
                           const AffineTerm* scales, AffineLayout scales_layout)
    : backend_(backend),
      given_(given),
      last_(std::move(affine)),
      formula_(formula),
      quantization_(quantization),
      scales_(scales),
      scales_layout_(std::move(scales_layout)) {
  if (quantization.rounds_y) {
    rounded_ = std::exchange(last_, Affine());
  } else if (!last_.steps().empty()) {
    rounded_ = last_;
    last_ = rounded_->take_last_step();
  }
}

void RowQuantizer::quantize(const RowsIn& x, const RowsOut& q, const RowNumbersOut& stats) const {
  Row row(*this, x.row_length, stats.mean || stats.rstd || stats.variance);
  const auto at = [](double* numbers, std::int64_t r) { return numbers ? numbers + r : nullptr; };
  const std::int64_t groups = quantization_.scales(x.row_length);
  const std::int64_t count = x.row_length / groups;
  for (std::int64_t r = 0; r < x.rows; ++r) {
    row.read(row_of(x, r), {at(stats.mean, r), at(stats.rstd, r), at(stats.variance, r)});
    RowsOut out = row_of(q, x.row_length, r);
    out.saturates = true;
    if (scales_ != nullptr) {
      row.write_by(*scales_, scales_layout_, out);
      continue;
    }
    for (std::int64_t g = 0; g < groups; ++g) {
      const LargestQuotient amax = row.largest(g * count, count);
      const double scale = quantization_.scale(amax.quotient, amax.is_zero);
      if (stats.scale != nullptr) stats.scale[r * groups + g] = scale;
      row.write(g * count, count, scale, row_of(out, 1, g * count));
    }
  }
}

std::vector<LargestQuotient> RowQuantizer::largest(const RowsIn& x) const {
  std::vector<LargestQuotient> result;
  Row row(*this, x.row_length, false);
  for (std::int64_t r = 0; r < x.rows; ++r) {
    row.read(row_of(x, r), {});
    result.push_back(row.largest(0, x.row_length));
  }
  return result;
}

}  // namespace lnorm
