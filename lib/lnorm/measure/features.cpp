#include "lnorm/measure/features.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <memory>
#include <type_traits>

#include "lnorm/core/chunk.hpp"

namespace lnorm {

namespace {

// So many features at once: their sums stay in the L1 cache.
constexpr std::int64_t kStrip = 64;

// The sums of a strip of features. Deviations are from the first row, which is one of them: so what cancels is no more than
// the number of rows.
template <class T>
struct Strip {
  double shift[kStrip];
  double sum[kStrip];
  double squares[kStrip];
  T absmax[kStrip];
  T zeros[kStrip];  // a count, exact as a float up to 2^24 rows

  // rows: their first elements, so many apart. Written for compilers to take several features at once.
  void add(const std::byte* from, std::int64_t stride, std::int64_t rows, std::int64_t width) {
    T row[kStrip]{};
    for (std::int64_t r = 0; r < rows; ++r) {
      const std::byte* const elements = from + r * stride * static_cast<std::int64_t>(sizeof(T));
      if (width == kStrip) {
        std::memcpy(row, elements, sizeof row);
      } else {
        std::memcpy(row, elements, static_cast<std::size_t>(width) * sizeof(T));
      }
      if (r == 0) begin(row);
      for (std::int64_t i = 0; i < kStrip; ++i) {
        const double deviation = static_cast<double>(row[i]) - shift[i];
        sum[i] += deviation;
        squares[i] += deviation * deviation;
      }
      for (std::int64_t i = 0; i < kStrip; ++i) {
        const T magnitude = std::fabs(row[i]);
        absmax[i] = absmax[i] < magnitude ? magnitude : absmax[i];
        zeros[i] += magnitude == 0 ? T{1} : T{0};
      }
    }
  }

  // Nothing if an element is not finite, or sums are not.
  bool get(std::int64_t rows, std::int64_t width, FeatureSums* to) const {
    bool all = true;
    for (std::int64_t i = 0; i < width; ++i) {
      const auto n = static_cast<double>(rows);
      const double left = squares[i] - sum[i] * (sum[i] / n);
      to[i] = {.mean = shift[i] + sum[i] / n,
               .squares = std::max(left, 0.0),
               .absmax = static_cast<double>(absmax[i]),
               .zeros = static_cast<std::int64_t>(zeros[i]),
               .non_finite = 0,
               .finite = rows,
               .first_non_finite = -1};
      all = all && std::isfinite(squares[i]);
    }
    return all;
  }

 private:
  void begin(const T* row) {
    for (std::int64_t i = 0; i < kStrip; ++i) {
      shift[i] = static_cast<double>(row[i]);
      sum[i] = 0;
      squares[i] = 0;
      absmax[i] = 0;
      zeros[i] = 0;
    }
  }
};

// One feature, of which elements may be not finite, or beyond the range of their squares.
template <class T>
FeatureSums careful_sums(const std::byte* from, std::int64_t stride, std::int64_t first_row,
                         std::int64_t rows) {
  FeatureSums sums;
  for (std::int64_t r = 0; r < rows; ++r) {
    T element;
    std::memcpy(&element, from + r * stride * static_cast<std::int64_t>(sizeof(T)), sizeof element);
    const auto number = static_cast<double>(element);
    if (!std::isfinite(number)) {
      if (sums.non_finite++ == 0) sums.first_non_finite = first_row + r;
      continue;
    }
    sums.append({.mean = number,
                 .squares = 0,
                 .absmax = std::fabs(number),
                 .zeros = number == 0 ? 1 : 0,
                 .non_finite = 0,
                 .finite = 1,
                 .first_non_finite = -1});
  }
  return sums;
}

template <class T>
void sum_numbers(const std::byte* from, std::int64_t features, std::int64_t first_row,
                 std::int64_t rows, FeatureSums* sums) {
  const auto size = static_cast<std::int64_t>(sizeof(T));
  const auto strip = std::make_unique<Strip<T>>();
  for (std::int64_t first = 0; first < features; first += kStrip) {
    const std::int64_t width = std::min(kStrip, features - first);
    strip->add(from + first * size, features, rows, width);
    if (strip->get(rows, width, sums + first)) continue;
    for (std::int64_t i = first; i < first + width; ++i) {
      sums[i] = careful_sums<T>(from + i * size, features, first_row, rows);
    }
  }
}

}  // namespace

double Feature::score(TopBy by) const noexcept {
  if (by == TopBy::non_finite) return static_cast<double>(non_finite);
  if (by == TopBy::mean) return std::fabs(mean);
  if (by == TopBy::variance) return variance;
  if (by == TopBy::variance_min) return -variance;
  return by == TopBy::zeros ? zeros : absmax;
}

void FeatureSums::append(const FeatureSums& next) noexcept {
  if (non_finite == 0) first_non_finite = next.first_non_finite;
  non_finite += next.non_finite;
  if (next.finite == 0) return;
  const auto n = static_cast<double>(finite);
  const auto m = static_cast<double>(next.finite);
  const double share = m / (n + m);
  const double apart = next.mean - mean;
  // Halves where the difference is beyond the range.
  mean = std::isfinite(apart) ? mean + apart * share : mean * (1 - share) + next.mean * share;
  squares += next.squares + (finite == 0 ? 0 : apart * apart * (n * share));
  absmax = std::max(absmax, next.absmax);
  zeros += next.zeros;
  finite += next.finite;
  if (n == 0) mean = next.mean;
}

Feature FeatureSums::feature(std::int64_t ddof) const noexcept {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  if (finite == 0) return {kNan, kNan, kNan, kNan, non_finite};
  const auto n = static_cast<double>(finite);
  return {mean, squares / (n - static_cast<double>(ddof)), absmax, static_cast<double>(zeros) / n,
          non_finite};
}

std::optional<Shape> FeatureStats::first_non_finite_index() const {
  std::optional<std::int64_t> first;
  const auto row = [&](std::int64_t number) {
    return sums[static_cast<std::size_t>(number)].first_non_finite;
  };
  for (std::int64_t i = 0; i < count(); ++i) {
    if (row(i) >= 0 && (!first || row(i) < row(*first))) first = i;
  }
  if (!first) return std::nullopt;
  return index_of_element(x.shape, axes, row(*first) + (slice ? slice->first : 0), *first);
}

void sum_features(const RawElements& elements, std::int64_t first_row, std::int64_t rows,
                  std::vector<FeatureSums>& sums) {
  const std::int64_t features = elements.count / rows;
  sums.assign(static_cast<std::size_t>(features), {});
  const bool is_native = elements.byte_order == std::endian::native;
  if (is_native && elements.dtype == DType::float32) {
    return sum_numbers<float>(elements.data, features, first_row, rows, sums.data());
  }
  if (is_native && elements.dtype == DType::float64) {
    return sum_numbers<double>(elements.data, features, first_row, rows, sums.data());
  }
  // Others are decoded first.
  std::vector<double> numbers(static_cast<std::size_t>(elements.count));
  const auto chunk = std::make_unique<Chunk>();
  const auto item = static_cast<std::int64_t>(item_size(elements.dtype));
  for (std::int64_t start = 0; start < elements.count; start += kChunk) {
    const std::int64_t count = std::min(kChunk, elements.count - start);
    load(elements.data + start * item, elements.dtype, elements.byte_order, count, *chunk);
    std::copy_n(chunk->high, count, numbers.begin() + start);
  }
  sum_numbers<double>(reinterpret_cast<const std::byte*>(numbers.data()), features, first_row, rows,
                      sums.data());
}

}  // namespace lnorm
