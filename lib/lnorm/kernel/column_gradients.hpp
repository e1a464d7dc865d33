#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "lnorm/core/double_double.hpp"
#include "lnorm/kernel/gradient.hpp"
#include "lnorm/kernel/gradient_statistics.hpp"

namespace lnorm {

// The sums of a part's columns, from its first column on: what additions to a high part lose adds up in the low one. They are
// arrays, one after another; stride is from one to the next.
struct ColumnSums {
  double* first = nullptr;
  std::size_t stride = 0;

  static constexpr std::size_t kArrays = 6;

  double* dweight_high() const noexcept { return first; }  // of dy * xhat
  double* dweight_low() const noexcept { return first + stride; }
  double* dbias_high() const noexcept { return first + 2 * stride; }  // of dy
  double* dbias_low() const noexcept { return first + 3 * stride; }
  // Bounds are made of these. Rows in doubles add |dy * xhat| and |dy|. Rows in double-doubles add
  // |dy| (offset + slope |xhat|), with the bounds of xhat, and what additions to dweight may lose; and what the additions
  // to dbias lose, which is nothing as a rule, so that ties are decided.
  double* dweight_bound() const noexcept { return first + 4 * stride; }
  double* dbias_bound() const noexcept { return first + 5 * stride; }

  // The gradients from a later column on.
  ColumnSums from(std::int64_t column) const noexcept {
    return {first == nullptr ? nullptr : first + column, stride};
  }
};

// Gathers dweight and dbias, which are sums over rows,
//
//   dweight = sum of dy * (x - mean) / s       dbias = sum of dy
//
// with bounds of their errors. Memory: 49 bytes a column, twice that where some rows are in
// doubles and some in double-doubles. One object for each thread; but several threads may add to different columns of
// rows in double-doubles.
class ColumnGradients {
 public:
  // It has so many columns, from the first on.
  explicit ColumnGradients(std::int64_t columns, std::int64_t first = 0);

  std::int64_t first() const noexcept { return first_; }
  std::int64_t size() const noexcept { return columns_; }

  // Where a kernel adds up whole rows in doubles, so many more rows now. Behind each array there is room for a vector.
  ColumnSums in_doubles(const XhatBounds& xhat, std::int64_t rows);

  // These take a row in double-doubles, or a part of it, that adds to them or to single columns:
  // call it once.
  ColumnSums in_double_doubles(std::int64_t first);

  // A term of one column, in double-doubles.
  void add_dweight(std::int64_t column, DoubleDouble term, double error);
  void add_dbias(std::int64_t column, Number dy);

  // A column has a term that is not finite.
  void mark_dweight_nan(std::int64_t column) { flags_[index(column)] |= kNoDweight; }
  void mark_dbias_nan(std::int64_t column) { flags_[index(column)] |= kNoDbias; }
  // A term of the column is not known.
  void mark_dweight_undecided(std::int64_t column) { flags_[index(column)] |= kUndecidedDweight; }

  // Adds what another thread, or another process, has gathered of the same columns.
  void merge(const ColumnGradients& other);

  // core/serialize.hpp calls it, between objects of the same columns.
  template <class Archive>
  void serialize(Archive& archive) {
    std::int64_t double_double_rows = double_double_rows_;
    archive(flags_, doubles_, double_doubles_, double_rows_, xhat_, double_double_rows);
    double_double_rows_ = double_double_rows;
  }

  // A sum within error of a value; or what is known in its place.
  struct Sum {
    DoubleDouble value{};
    double error = 0;
    bool is_undecided = false;  // nothing is known
    bool is_nan = false;
  };
  Sum dweight(std::int64_t column) const;
  Sum dbias(std::int64_t column) const;
  bool has_double_rows() const noexcept { return !doubles_.empty(); }

 private:
  enum Flag : std::uint8_t { kNoDweight = 1, kNoDbias = 2, kUndecidedDweight = 4 };
  std::size_t index(std::int64_t column) const noexcept {
    return static_cast<std::size_t>(column - first_);
  }

  void make_doubles();
  void make_double_doubles();
  void add_bounds(const XhatBounds& xhat);

  std::int64_t columns_;
  std::int64_t first_;
  std::size_t stride_;  // of the arrays below
  std::vector<std::uint8_t> flags_;
  std::vector<double> doubles_;  // the arrays of ColumnSums
  std::vector<double> double_doubles_;
  std::int64_t double_rows_ = 0;
  XhatBounds xhat_;  // of all rows in doubles
  std::once_flag has_double_doubles_;
  std::atomic<std::int64_t> double_double_rows_ = 0;
};

}  // namespace lnorm
