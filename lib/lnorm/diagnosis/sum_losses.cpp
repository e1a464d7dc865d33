#include "lnorm/diagnosis/sum_losses.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <functional>
#include <numeric>
#include <utility>

#include "lnorm/core/double_double.hpp"

namespace lnorm {

namespace {

using Rows = std::span<const std::span<const double>>;

constexpr std::int64_t kMostOfWelford = 65536;  // a chain of divisions
constexpr std::int64_t kMostAtOnce = 65536;     // longer rows are summed one by one

// Rounds nothing: the operation itself has done so.
struct Native {
  template <class T>
  T operator()(T value) const {
    return value;
  }
};

// Sums of so many rows at once. To round to float and then to a dtype of at most half its digits is to round once.
template <class T, class Round, std::size_t width>
class Sums {
 public:
  using V = std::array<T, width>;

  Sums(Rows rows, Round round, const SummedShape& shape)
      : round_(round), shape_(shape.extents), file_(shape.file_order()), x_(rows[0].size()) {
    for (std::size_t r = 0; r < rows.size(); ++r) {
      for (std::size_t i = 0; i < x_.size(); ++i) x_[i][r] = round_(static_cast<T>(rows[r][i]));
    }
  }

  // take(mean, variance): of each order, the numbers of all rows.
  template <class Take>
  void run_statistics(const Formula& formula, bool is_one_pass, Take take) {
    const double freedom = formula.freedom(static_cast<double>(x_.size()));
    each_order([&](auto sum) { take_order(sum, formula, is_one_pass, freedom, take); });
    if (!formula.has_mean() || is_one_pass || std::ssize(x_) > kMostOfWelford) return;
    for (const std::size_t lanes : {1U, 4U}) welford(lanes, {}, freedom, take);
    if (!file_.empty()) welford(1, file_, freedom, take);
  }

  // take(sum): of each order, the sums of all rows.
  template <class Take>
  void run_sums(bool is_atomic, Take take) const {
    each_order([&](auto sum) { take(sum(x_)); });
    if (!is_atomic) return;
    const std::size_t n = x_.size();
    for (std::size_t stride : {7919U, 31337U, 40503U, 104729U}) {
      while (std::gcd(stride, n) != 1) ++stride;
      V sum{};
      for (std::size_t i = 0; i < n; ++i) sum = add(sum, x_[i * stride % n]);
      take(sum);
    }
  }

  // The sum of a row's terms, as they were rounded, and that of their magnitudes.
  std::pair<double, double> exact_sum(std::size_t row) const {
    DoubleDouble sum;
    double magnitudes = 0;
    for (const V& term : x_) {
      sum = sum + static_cast<double>(term[row]);
      magnitudes += std::fabs(static_cast<double>(term[row]));
    }
    return {sum.high, magnitudes};
  }

 private:
  // by_order(sum): the sum of terms in each order.
  template <class ByOrder>
  void each_order(ByOrder by_order) const {
    const std::size_t n = x_.size();
    by_order([this](const std::vector<V>& t) { return chain(t, 0, t.size()); });
    by_order([this](const std::vector<V>& t) {
      V sum{};
      for (std::size_t i = t.size(); i-- > 0;) sum = add(sum, t[i]);
      return sum;
    });
    if (n > 2) {
      by_order([this](const std::vector<V>& t) {
        const std::size_t half = (t.size() + 1) / 2;
        return add(chain(t, 0, half), chain(t, half, t.size()));
      });
    }
    for (const std::size_t lanes : {2U, 4U, 16U, 32U, 256U}) {
      if (lanes >= n) break;
      by_order([this, lanes](const std::vector<V>& t) { return by_lanes(t, lanes); });
    }
    for (const std::size_t block : {16U, 1024U}) {
      if (block >= n) break;
      by_order([this, block](const std::vector<V>& t) { return by_blocks(t, block); });
    }
    if (!file_.empty()) {
      by_order([this](const std::vector<V>& t) {
        V sum{};
        // Terms may be those of several rows.
        for (std::size_t first = 0; first < t.size(); first += file_.size()) {
          for (const std::size_t i : file_) sum = add(sum, t[first + i]);
        }
        return sum;
      });
    }
    for (std::size_t axis = 0; shape_.size() > 1 && axis < shape_.size(); ++axis) {
      by_order([this, axis](const std::vector<V>& t) { return by_axis(t, axis); });
    }
  }

  template <class Operation>
  V each(const V& a, const V& b, Operation operation) const {
    V result{};
    for (std::size_t r = 0; r < width; ++r) result[r] = round_(operation(a[r], b[r]));
    return result;
  }
  V add(const V& a, const V& b) const { return each(a, b, std::plus<>()); }
  V subtract(const V& a, const V& b) const { return each(a, b, std::minus<>()); }
  V multiply(const V& a, const V& b) const { return each(a, b, std::multiplies<>()); }
  V rounded(double number) const {
    V result;
    result.fill(round_(static_cast<T>(number)));
    return result;
  }
  V divide(const V& a, double b) const { return each(a, rounded(b), std::divides<>()); }

  V chain(const std::vector<V>& t, std::size_t begin, std::size_t end) const {
    V sum{};
    for (std::size_t i = begin; i < end; ++i) sum = add(sum, t[i]);
    return sum;
  }

  V by_lanes(const std::vector<V>& t, std::size_t lanes) const {
    std::vector<V> sums(t.begin(), t.begin() + static_cast<std::ptrdiff_t>(lanes));
    for (std::size_t i = lanes; i < t.size(); i += lanes) {
      const std::size_t count = std::min(lanes, t.size() - i);
      for (std::size_t k = 0; k < count; ++k) sums[k] = add(sums[k], t[i + k]);
    }
    for (std::size_t left = lanes / 2; left > 0; left /= 2) {
      for (std::size_t k = 0; k < left; ++k) sums[k] = add(sums[k], sums[k + left]);
    }
    return sums[0];
  }

  // Each block is summed first, then the sums.
  V by_blocks(const std::vector<V>& t, std::size_t block) const {
    V sum{};
    for (std::size_t i = 0; i < t.size(); i += block) {
      sum = add(sum, chain(t, i, std::min(i + block, t.size())));
    }
    return sum;
  }

  // The axis is summed first, then the sums.
  V by_axis(const std::vector<V>& t, std::size_t axis) const {
    const auto extent = [&](std::size_t k) { return static_cast<std::size_t>(shape_[k]); };
    std::size_t inner = 1;
    for (std::size_t k = axis + 1; k < shape_.size(); ++k) inner *= extent(k);
    const std::size_t block = inner * extent(axis);
    V all{};
    std::vector<V> sums(inner);
    for (std::size_t first = 0; first < t.size(); first += block) {
      std::fill(sums.begin(), sums.end(), V{});
      for (std::size_t i = 0; i < block; ++i) sums[i % inner] = add(sums[i % inner], t[first + i]);
      for (const V& sum : sums) all = add(all, sum);
    }
    return all;
  }

  template <class Sum, class Take>
  void take_order(const Sum& sum, const Formula& formula, bool is_one_pass, double freedom,
                  Take take) {
    const auto n = static_cast<double>(x_.size());
    V mean{};
    if (formula.has_mean()) mean = divide(sum(x_), n);
    squares_.resize(x_.size());
    for (std::size_t i = 0; i < x_.size(); ++i) {
      const V d = is_one_pass ? x_[i] : subtract(x_[i], mean);
      squares_[i] = multiply(d, d);
    }
    if (!is_one_pass) return take(mean, divide(sum(squares_), freedom));
    const V variance = subtract(divide(sum(squares_), n), multiply(mean, mean));
    take(mean, multiply(variance, rounded(n / freedom)));
  }

  template <class Take>
  void welford(std::size_t lanes, std::span<const std::size_t> order, double freedom,
               Take take) const {
    lanes = std::min(lanes, x_.size());
    std::vector<V> means(lanes);
    std::vector<V> squares(lanes);
    std::vector<double> counts(lanes);
    for (std::size_t i = 0; i < x_.size(); ++i) {
      const std::size_t k = i % lanes;
      const V& x = x_[order.empty() ? i : order[i]];
      const V before = subtract(x, means[k]);
      means[k] = add(means[k], divide(before, ++counts[k]));
      squares[k] = add(squares[k], multiply(before, subtract(x, means[k])));
    }
    for (std::size_t k = 1; k < lanes; ++k) {
      const double all = counts[0] + counts[k];
      const V delta = subtract(means[k], means[0]);
      const V part = rounded(counts[k] / all);
      const V between = rounded(counts[0] * counts[k] / all);
      means[0] = add(means[0], multiply(delta, part));
      squares[0] = add(add(squares[0], squares[k]), multiply(multiply(delta, delta), between));
      counts[0] = all;
    }
    take(means[0], divide(squares[0], freedom));
  }

  Round round_;
  const Shape& shape_;
  const std::vector<std::size_t> file_;  // the order of the file, if it is another one
  std::vector<V> x_;
  std::vector<V> squares_;
};

// see(sums, first, count): of some rows at once.
template <class T, std::size_t width, class Round, class See>
void for_some(Rows rows, const Round& round, const SummedShape& shape, See see) {
  for (std::size_t first = 0; first < rows.size(); first += width) {
    const Rows some = rows.subspan(first, std::min(width, rows.size() - first));
    Sums<T, Round, width> sums(some, round, shape);
    see(sums, first, some.size());
  }
}

template <class T, class Round, class See>
void for_widths(Rows rows, const Round& round, const SummedShape& shape, See see) {
  const bool is_long = std::ssize(rows[0]) > kMostAtOnce;
  is_long || rows.size() == 1 ? for_some<T, 1>(rows, round, shape, see)
                              : for_some<T, 8>(rows, round, shape, see);
}

template <class See>
void for_rows(Rows rows, const Arithmetic& arithmetic, const SummedShape& shape, See see) {
  if (rows.empty() || rows[0].empty()) return;
  if (arithmetic.dtype == DType::float64) {
    for_widths<double>(rows, Native(), shape, see);
  } else if (arithmetic.dtype == DType::float32) {
    for_widths<float>(rows, Native(), shape, see);
  } else {
    const OutputFormat format(arithmetic.dtype);
    const auto round = [&](float value) { return static_cast<float>(format.rounded(value)); };
    for_widths<float>(rows, round, shape, see);
  }
}

// take(row, mean, variance): of each order.
template <class Take>
void run_orders(Rows rows, const Formula& formula, const Arithmetic& arithmetic,
                const SummedShape& shape, bool is_one_pass, Take take) {
  for_rows(rows, arithmetic, shape, [&](auto& sums, std::size_t first, std::size_t count) {
    sums.run_statistics(formula, is_one_pass, [&](const auto& means, const auto& variances) {
      for (std::size_t r = 0; r < count; ++r) {
        take(first + r, static_cast<double>(means[r]), static_cast<double>(variances[r]));
      }
    });
  });
}

// Orders that leave the arithmetic's range tell nothing.
void take_most(double found, double exact, double& most) {
  const double off = std::fabs(found - exact);
  if (std::isfinite(off)) most = std::max(most, off);
}

}  // namespace

std::vector<std::size_t> SummedShape::file_order() const {
  if (std::ranges::is_sorted(axes)) return {};
  std::vector<std::size_t> places(axes.size());  // of the axes, in the order of the file
  std::iota(places.begin(), places.end(), std::size_t{0});
  std::ranges::sort(places, {}, [&](std::size_t place) { return axes[place]; });
  std::vector<std::size_t> order{0};
  for (const std::size_t place : places) {
    std::size_t stride = 1;
    for (std::size_t k = place + 1; k < extents.size(); ++k)
      stride *= static_cast<std::size_t>(extents[k]);
    std::vector<std::size_t> longer;
    for (const std::size_t first : order) {
      for (std::size_t i = 0; i < static_cast<std::size_t>(extents[place]); ++i)
        longer.push_back(first + i * stride);
    }
    order = std::move(longer);
  }
  return order;
}

std::vector<SumLosses> losses_of(std::span<const MeasuredRow> rows, const Formula& formula,
                                 const Arithmetic& arithmetic, const SummedShape& shape,
                                 bool is_one_pass) {
  std::vector<SumLosses> losses(rows.size());
  std::vector<std::span<const double>> x;
  for (const MeasuredRow& row : rows) x.push_back(row.x);
  run_orders(x, formula, arithmetic, shape, is_one_pass,
             [&](std::size_t r, double mean, double variance) {
               take_most(mean, rows[r].exact.mean, losses[r].mean);
               take_most(variance, rows[r].exact.variance, losses[r].variance);
             });
  return losses;
}

std::vector<double> losses_of_sums(std::span<const std::span<const double>> terms,
                                   const Arithmetic& arithmetic, const SummedShape& shape,
                                   bool is_atomic) {
  std::vector<double> losses(terms.size());
  for_rows(terms, arithmetic, shape, [&](auto& sums, std::size_t first, std::size_t count) {
    std::vector<std::pair<double, double>> exact;
    for (std::size_t r = 0; r < count; ++r) exact.push_back(sums.exact_sum(r));
    sums.run_sums(is_atomic, [&](const auto& found) {
      for (std::size_t r = 0; r < count; ++r) {
        take_most(static_cast<double>(found[r]), exact[r].first, losses[first + r]);
      }
    });
    for (std::size_t r = 0; r < count; ++r) {
      if (exact[r].second > 0) losses[first + r] /= exact[r].second;
    }
  });
  return losses;
}

std::vector<OrderStatistics> statistics_by_orders(std::span<const double> x, const Formula& formula,
                                                  const Arithmetic& arithmetic,
                                                  const SummedShape& shape) {
  std::vector<OrderStatistics> result;
  run_orders({&x, 1}, formula, arithmetic, shape, false,
             [&](std::size_t, double mean, double variance) {
               result.push_back({mean, variance});
             });
  return result;
}

}  // namespace lnorm
