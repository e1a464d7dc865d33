#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "lnorm/core/double_double.hpp"
#include "lnorm/kernel/gradient.hpp"
#include "lnorm/kernel/gradient_statistics.hpp"

namespace lnorm {

// A column's sums over narrow rows: what additions to the high part lose adds up in the low one. Pointers are to that of a part's first column.
struct NarrowColumns {
  double* dweight_high;  // of dy * xhat
  double* dweight_low;
  double* dbias_high;  // of dy
  double* dbias_low;
  double* dweight_size;  // of |dy * xhat|
  double* dbias_size;    // of |dy|
};

// The same over wide rows.
struct WideColumns {
  double* dweight_high;
  double* dweight_low;
  double* dbias_high;
  double* dbias_low;
  double* dweight_error;  // sum of |dy| (offset + slope |xhat|), with the bounds of xhat
  double*
      dbias_error;  // sum of what the additions lose: as a rule nothing, so that ties are decided
};

// Gathers dweight and dbias, which are sums over rows,
//
//   dweight = sum of dy * (x - mean) / s       dbias = sum of dy
//
// with bounds of their errors. Memory: 49 bytes a column, twice that where some rows are narrow and some are wide. One
// object for each thread; but several threads may add to different columns of wide rows.
class ColumnGradients {
 public:
  // Of so many columns, from the first on.
  explicit ColumnGradients(std::int64_t columns, std::int64_t first = 0);

  std::int64_t first() const noexcept { return first_; }
  std::int64_t size() const noexcept { return columns_; }

  // Called for all rows, whole ones, that add to them. Arrays are followed by room for a vector.
  NarrowColumns narrow(std::span<const NarrowGradient> rows);

  // Called once for every row, or part of it, that adds to them or to single columns.
  WideColumns wide(std::int64_t first);

  // A term of one column, in double-doubles.
  void add_dweight(std::int64_t column, DoubleDouble term, double error);
  void add_dbias(std::int64_t column, Number dy);

  // A column has a term that is not finite.
  void mark_dweight_nan(std::int64_t column) { flags_[index(column)] |= kNoDweight; }
  void mark_dbias_nan(std::int64_t column) { flags_[index(column)] |= kNoDbias; }
  // A term of the column is not known.
  void open_dweight(std::int64_t column) { flags_[index(column)] |= kOpenDweight; }

  // Adds what another thread, or another process, has gathered of the same columns.
  void merge(const ColumnGradients& other);

  // For core/serialize.hpp, between objects of the same columns.
  template <class Archive>
  void serialize(Archive& archive) {
    std::int64_t wide_rows = wide_rows_;
    archive(flags_, narrow_, wide_, narrow_rows_, xhat_, wide_rows);
    wide_rows_ = wide_rows;
  }

  // A sum within error of a value; or what is known in its place.
  struct Sum {
    DoubleDouble value{};
    double error = 0;
    bool is_open = false;  // nothing is known
    bool is_nan = false;
  };
  Sum dweight(std::int64_t column) const;
  Sum dbias(std::int64_t column) const;
  bool has_narrow_rows() const noexcept { return !narrow_.empty(); }

 private:
  enum Flag : std::uint8_t { kNoDweight = 1, kNoDbias = 2, kOpenDweight = 4 };
  std::size_t index(std::int64_t column) const noexcept {
    return static_cast<std::size_t>(column - first_);
  }

  void make_narrow();
  void make_wide();
  void add_bounds(const XhatBounds& xhat);

  std::int64_t columns_;
  std::int64_t first_;
  std::size_t stride_;  // of the arrays below
  std::vector<std::uint8_t> flags_;
  std::vector<double> narrow_;  // as NarrowColumns has them
  std::vector<double> wide_;    // as WideColumns has them
  std::int64_t narrow_rows_ = 0;
  XhatBounds xhat_;  // of all narrow rows
  std::once_flag has_wide_;
  std::atomic<std::int64_t> wide_rows_ = 0;
};

}  // namespace lnorm
