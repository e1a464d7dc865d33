#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "lnorm/diagnosis/check.hpp"
#include "lnorm/io/tensor_source.hpp"
#include "lnorm/kernel/affine.hpp"
#include "lnorm/kernel/layer_norm.hpp"
#include "lnorm/kernel/rows.hpp"
#include "lnorm/layout/mask.hpp"
#include "lnorm/layout/row_source.hpp"
#include "lnorm/pipeline/plan.hpp"

namespace lnorm {

// The rows of a tensor along axes, numbered in C order, wherever they lie. Requires random access.
class CheckRows {
 public:
  CheckRows(TensorSource& source, const Axes& axes, int threads);

  std::int64_t count() const noexcept { return plan_.rows; }
  std::int64_t row_length() const noexcept { return plan_.row_length; }

  // As they lie there, in the buffer. Several threads may do so at once.
  RowsIn read(std::int64_t first, std::int64_t count, TileBuffer& buffer) const;

 private:
  LentSource source_;
  Plan plan_;
  std::optional<RowSource> rows_;
};

// The elements of the one row as doubles, without low parts.
std::vector<double> decoded(const Backend& backend, const RowsIn& row);

// A row of float64 that lies in the numbers, which must outlive it; and numbers in a float dtype, each rounded once.
RowsIn row_of_doubles(const std::vector<double>& numbers);
RowsIn row_of_doubles(std::vector<double>&&) = delete;
std::vector<std::byte> encoded(const std::vector<double>& numbers, DType dtype);

// Of a whole tensor, in C order.
std::vector<double> all_numbers(const Backend& backend, TensorSource& source, int threads);

// Returns a term's number for each of count elements of a row by the layout; otherwise for an empty term.
std::vector<double> numbers_of(const AffineTerm& term, std::int64_t count, double otherwise,
                               const AffineLayout& layout = {}, std::int64_t row = 0);

// Weight and bias of a row of the plan, times a scale: 1 and 0 where there are none.
AffineNumbers affine_numbers(const AffineTerm& weight, const AffineTerm& bias, const Plan& plan,
                             std::int64_t row = 0, double scale = 1);
// The same where rows have their own; null where all have the same.
std::shared_ptr<const AffineNumbers> own_affine(const AffineTerm& weight, const AffineTerm& bias,
                                                const Plan& plan, std::int64_t row,
                                                double scale = 1);

// Statistics of a row that a kernel was given; null: it computes them.
std::optional<GivenNumbers> given_numbers(const GivenStatistics* given, std::int64_t row);

// Whether a float has more digits than the arithmetic.
bool has_more_digits(DType dtype, DType arithmetic);

// How the rows of a plan are judged, with weight and bias of its first row, and without the output scale. is_sum: x is a sum that is not
// rounded. has_rstd: it is given.
JudgeSetting judge_setting(const Plan& plan, const Backend& backend, const CheckOptions& options,
                           const AffineTerm& weight, const AffineTerm& bias, bool is_sum,
                           bool has_rstd, DType output);

// What a kernel was asked for that has weight and bias in the rows of a plan.
KernelContext context_of(const JudgeSetting& setting, Quantity of, const AffineTerm& weight,
                         const AffineTerm& bias, const Plan& plan);

// A check of actual by the rows of x, in which nothing has been judged.
Check begin_check(const TensorInfo& x, const TensorInfo& actual, const Plan& plan,
                  const JudgeSetting& setting);

// Rows that are wrong, and how many of them each of some causes explains.
struct CauseCounts {
  std::int64_t wrong = 0;
  std::vector<std::int64_t> explained = {};

  void merge(const CauseCounts& other);
  // Whether it explains all of them.
  bool is_cause(std::size_t k) const { return wrong > 0 && explained[k] == wrong; }
  // Drops the causes that do not explain nine of ten right rows: the kernel does not do that to every row.
  void refute(const CauseCounts& right);
  bool has_cause() const { return wrong > 0 && std::ranges::count(explained, wrong) > 0; }
};

// A comparison of a kernel's tensor with exact rows, which are added part by part.
Comparison begin_comparison(const TensorInfo& actual, const Criteria& criteria);

// What a part of it finds: rows from the first on, as they come from the kernel and as they should be.
// mask: null if all elements count.
Comparison compared_part(const Comparison& whole, std::int64_t first_row, const RowsIn& actual,
                         const RowsIn& exact, const RowMask* mask = nullptr);

// Adds the elements of exact rows to a comparison. actual: as many of the other side.
// kept: as of leave_out; if it is empty all elements count. until_mismatch: some elements more than up to the first that does not pass.
void compare_rows(const RowsIn& exact, const RowsIn& actual, Comparison& comparison,
                  std::span<const char> kept = {}, bool until_mismatch = false);

// Wrong kernels are tried on rows of so many elements at most.
inline constexpr std::int64_t kMostTried = std::int64_t{1} << 20;

// Of the elements of all rows; nothing where they are not finite.
std::optional<RowStatistics> statistics_of_all(TensorSource& x, const Plan& plan,
                                               const Backend& backend, int threads);

// Rows spread over a tensor, and the first that are affected.
std::vector<std::int64_t> sampled_rows(const JudgedRows& judged, std::int64_t rows,
                                       std::int64_t row_length);

// What was found in some rows by the tree bound, and what the measured one finds.
struct SettledRows {
  JudgedRows before;
  JudgedRows after;
};

// Judges the rows beyond the tree bound by the measured one, until so many differ: the others are counted by the tree bound.
inline constexpr std::int64_t kEnoughDiffer = 64;
// some: judges a few rows, whose sums are run together. Several threads call it at once.
void settle_rows(
    JudgedRows& judged, std::int64_t row_length, int threads,
    const std::function<void(std::span<const std::int64_t> rows, SettledRows& part)>& some);

// Fills in which rows and columns are affected; in words, unless a formula explains them. shape: of
// the numbers of rows.
void describe_places(Check& result, std::int64_t rows, const Shape& shape);

}  // namespace lnorm
