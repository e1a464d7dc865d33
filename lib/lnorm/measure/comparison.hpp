#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lnorm/core/axes.hpp"
#include "lnorm/core/chunk.hpp"
#include "lnorm/core/non_finite.hpp"
#include "lnorm/core/tensor_info.hpp"
#include "lnorm/measure/criteria.hpp"
#include "lnorm/measure/error_map.hpp"
#include "lnorm/measure/error_stats.hpp"
#include "lnorm/measure/fit.hpp"
#include "lnorm/measure/raw_elements.hpp"
#include "lnorm/measure/row_runs.hpp"
#include "lnorm/measure/ulp.hpp"
#include "lnorm/measure/where.hpp"
#include "lnorm/measure/worst.hpp"

// Two tensors, compared element by element.
namespace lnorm {

// How many distances are 0, at most 1/2 ulp, 1, 2, 4 and so on up to 2^64, and beyond.
class UlpCounts {
 public:
  static constexpr std::size_t kClasses = 68;

  // Which class a distance belongs to: it is greater than the bound of the class before it. It has
  // no branch, which distances would mislead.
  static std::size_t class_of_steps(std::uint64_t steps) noexcept {
    // The class is that of steps - 1; the least bit is set for the sake of 0, which has none.
    const auto width = static_cast<std::size_t>(std::bit_width((steps - 1) | 1)) -
                       static_cast<std::size_t>(steps == 1);
    return (2 + width + static_cast<std::size_t>(steps == kNoUlpDistance)) *
           static_cast<std::size_t>(steps != 0);
  }
  static std::size_t class_of_real(double distance) noexcept {
    // The exponent of the least power of two that is not less.
    const std::uint64_t up = std::bit_cast<std::uint64_t>(distance) + 0xf'ffff'ffff'ffff;
    const int exponent = static_cast<int>(up >> 52) - 1023;
    return static_cast<std::size_t>(std::clamp(2 + exponent, 1, 67) *
                                    static_cast<int>(distance != 0));
  }

  // Infinity for the last class.
  static double bound(std::size_t number) noexcept {
    if (number == 0) return 0;
    if (number == kClasses - 1) return kInfinity;
    return std::ldexp(1.0, static_cast<int>(number) - 2);
  }

  void add(std::size_t number, std::int64_t count = 1) noexcept { counts_[number] += count; }
  void append(const UlpCounts& next) noexcept {
    for (std::size_t i = 0; i < kClasses; ++i) counts_[i] += next.counts_[i];
  }

  std::int64_t count(std::size_t number) const noexcept { return counts_[number]; }

  // How many classes there are up to the last one that is not empty.
  std::size_t size() const noexcept {
    std::size_t size = kClasses;
    while (size > 0 && counts_[size - 1] == 0) --size;
    return size;
  }

  bool operator==(const UlpCounts&) const = default;

 private:
  std::array<std::int64_t, kClasses> counts_{};
};

template <class T>
struct Greatest {
  T value{};
  ElementPair at;  // the first, if there are several
};

// Rows as normalization sees them: which elements belong together.
struct MismatchedRows {
  Axes axes;  // along which a row goes
  std::int64_t rows = 0;
  std::int64_t mismatched = 0;  // in which an element does not pass
  Shape first;                  // the index of the first of them, along the other axes

  template <class Archive>
  void serialize(Archive& archive) {
    archive(axes, rows, mismatched, first);
  }
};

// A criterion that does not hold.
struct Failure {
  Criterion criterion;
  double found;  // what is out of bounds; of criteria that count, how many elements; NaN: none
};

// ComparedElements is what is found in the elements of two tensors.
struct ComparedElements {
  std::int64_t elements = 0;    // all before this one have been looked at
  std::int64_t left_out = 0;    // of these, by a mask
  std::int64_t mismatched = 0;  // out of bounds, or not finite and not passing
  std::int64_t out_of_tolerance = 0;
  std::vector<ElementPair> first_mismatches;
  std::int64_t non_finite_one_side = 0;   // NaN or infinite on one side, finite on the other
  std::int64_t rounded_to_infinity = 0;   // of these, those that pass
  std::int64_t non_finite_differing = 0;  // neither is finite, but they are not equal

  // Over the pairs of which both are finite; nothing if there are none.
  std::optional<Greatest<double>> absolute;  // |actual - expected|
  std::optional<Greatest<double>> relative;  // that / |expected|, where expected is not 0
  std::optional<Greatest<Ulps>> ulps;
  std::optional<Greatest<double>> row_ulps;  // Distances::row_ulps
  UlpCounts ulp_counts;
  std::int64_t misrounded_ties = 0;  // half an ulp off, and not what expected rounds to
  ErrorStats errors;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(elements, left_out, mismatched, out_of_tolerance, first_mismatches, non_finite_one_side,
            rounded_to_infinity, non_finite_differing, absolute, relative, ulps, row_ulps,
            ulp_counts, misrounded_ties, errors);
  }
};

struct Comparison : ComparedElements {
  TensorInfo actual;  // the whole tensors, where only some rows were looked at
  TensorInfo expected;
  std::optional<RowSlice> slice;  // these rows; positions and counts of elements are of them alone
  Criteria criteria;

  // If the shapes differ nothing else has been looked at.
  bool same_shape = false;
  // Whether errors are summed up, which only criteria of all pairs together and reports need.
  bool has_errors = true;

  std::optional<MismatchedRows> rows;  // if asked for

  // Whether they pass or not; of every row the worst element alone, if rows were asked for.
  WorstElements worst;
  Axes row_max_axes;  // the axes of the rows of row_max

  // Where the elements are that do not pass: in which rows along row_max_axes, in which of their elements, and in words.
  AffectedNumbers affected_rows;
  AffectedNumbers affected_columns;
  std::string where;
  std::vector<RowErrors> failed_rows;  // if asked for: those, in order

  // What explains the errors: actual is expected times one number plus another, but for rounding.
  std::optional<Fit> fit;

  std::optional<ErrorMap>
      error_map;  // if asked for; its rows are those of row_max, or go along the last axis

  // The dtype in whose ulp distances are: the actual one if the expected one is wider, else the expected one.
  DType ulp_dtype() const;

  // Counts the pairs of two finite elements in which actual is expected rounded to its dtype; +0
  // and -0 are the same. There is no count unless the expected dtype is the wider one.
  std::optional<std::int64_t> correctly_rounded() const;

  // How many pairs have been compared.
  std::int64_t compared() const noexcept { return elements - left_out; }

  // How many pairs fail because NaN or infinity stands against another value.
  std::int64_t not_finite() const noexcept {
    return non_finite_one_side - rounded_to_infinity + non_finite_differing;
  }

  // Those, and the pairs of which both are finite.
  std::int64_t judged() const noexcept { return errors.pairs() + not_finite(); }

  // Whether all other pairs are equal, so that the distances say nothing of what fails.
  bool fails_by_nan_alone() const noexcept {
    return mismatched > 0 && mismatched == not_finite() && (!absolute || absolute->value == 0);
  }

  // The greatest distance by a measure; nothing if there is no pair that has one.
  std::optional<double> greatest(WorstBy by) const;

  // The criteria that do not hold, in the order of Criterion. Of shapes that differ there are none.
  std::vector<Failure> failures() const;

  bool equal() const { return same_shape && failures().empty(); }

  // The number of the first row, in the whole tensors.
  std::int64_t first_row() const noexcept { return slice ? slice->first : 0; }

  // Where an element lies in the whole tensors.
  Shape index(const ElementPair& pair) const;

  // The index of the row in which an element lies, in the whole tensors. Requires rows.
  Shape row_index(const ElementPair& pair) const;
  // In the whole tensor, in C order.
  std::int64_t position(const ElementPair& pair) const;

  // Back to nothing found, before the element at a position. The tensors and the criteria stay. worst takes
  // what is worse than a floor.
  void clear(std::int64_t position, std::uint64_t floor);

  // Adds what was found in the elements that follow.
  void append(const Comparison& next, std::size_t max_mismatches);

  // All but the error map.
  template <class Archive>
  void serialize(Archive& archive) {
    ComparedElements::serialize(archive);
    archive(actual, expected, slice, criteria, same_shape, rows, worst, row_max_axes, affected_rows,
            affected_columns, where, failed_rows, fit);
  }
};

// A row of the one table of criteria, which is in the order of Criterion.
struct CriterionRow {
  std::string_view name;  // in JSON; text has blanks in it
  // Null where the bound is no single number: then the criterion counts elements.
  std::optional<double> Criteria::*bound;
  std::string_view unit;  // of the bound
  // What is bounded; nothing where there is nothing to bound.
  std::optional<double> (*found)(const Comparison& comparison);
  Criterion criterion;
  // It bounds each element from above, or all together from above or from below.
  enum { each_element, most, least } kind;

  bool counts() const noexcept { return bound == nullptr; }
};
std::span<const CriterionRow> criterion_rows() noexcept;
const CriterionRow& row_of(Criterion criterion) noexcept;

// Removes the elements whose kept is 0 from both chunks and from the runs that describe them.
void leave_out(const char* kept, Chunk& actual, Chunk& expected, std::vector<RowRun>& runs);

// Adds the next pairs, of the dtypes that comparison names, to the comparison, keeping the first
// max_mismatches of its mismatches. runs: the rows that they are of, one after another. places, unless it is null,
// takes where the pairs are that do not pass.
void compare_elements(const Chunk& actual, const Chunk& expected, std::span<const RowRun> runs,
                      std::size_t max_mismatches, Comparison& comparison,
                      MismatchPlaces* places = nullptr);

// Adds at most kChunk pairs whose sides are these elements, bit by bit, but much faster. Requires that
// NaN equals NaN, or that there is none.
void compare_same_elements(const RawElements& elements, Comparison& comparison);

}  // namespace lnorm
