#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "lnorm/core/axes.hpp"
#include "lnorm/core/chunk.hpp"
#include "lnorm/core/tensor_info.hpp"
#include "lnorm/measure/criteria.hpp"
#include "lnorm/measure/error_map.hpp"
#include "lnorm/measure/error_stats.hpp"
#include "lnorm/measure/raw_elements.hpp"
#include "lnorm/measure/ulp_counts.hpp"
#include "lnorm/measure/worst.hpp"

// Two tensors held against each other, element by element.
namespace lnorm {

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
  double
      found;  // what is out of bounds; of finite, tolerance and max_mismatched: how many elements; NaN: none
};

struct Comparison {
  TensorInfo actual;  // the whole tensors, where only some rows were looked at
  TensorInfo expected;
  std::optional<RowSlice> slice;  // these rows; positions and counts of elements are of them alone
  Criteria criteria;

  // If the shapes differ nothing else has been looked at.
  bool same_shape = false;
  std::int64_t elements = 0;    // all before this one have been looked at
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
  UlpCounts ulp_counts;
  std::int64_t misrounded_ties = 0;  // half an ulp off, and not what expected rounds to
  ErrorStats errors;

  std::optional<MismatchedRows> rows;  // if asked for

  // Whether they pass or not; of every row the worst element alone, if rows were asked for.
  WorstElements worst;
  std::optional<Axes> row_max_axes;  // the axes of the rows of row_max; nothing: it is not known

  std::optional<ErrorMap>
      error_map;  // if asked for; its rows are those of row_max, or go along the last axis

  // The dtype in whose ulp distances are: the actual one if the expected one is wider, else the expected one.
  DType ulp_dtype() const;

  // In how many pairs actual is expected rounded to its dtype, over the pairs of which both are finite; +0 and -0 are
  // the same. Nothing unless the expected dtype is the wider one.
  std::optional<std::int64_t> correctly_rounded() const;

  // The criteria that do not hold, in the order of Criterion. Of shapes that differ there are none.
  std::vector<Failure> failures() const;

  bool equal() const { return same_shape && failures().empty(); }

  // The number of the first row, in the whole tensors.
  std::int64_t first_row() const noexcept { return slice ? slice->first : 0; }

  // Where an element lies in the whole tensors.
  Shape index(const ElementPair& pair) const;

  // The index of the row in which an element lies, in the whole tensors. Requires rows.
  Shape row_index(const ElementPair& pair) const;

  // Back to nothing found, before the element at a position. The tensors and the criteria stay. worst takes
  // what is worse than a floor.
  void clear(std::int64_t position, std::uint64_t floor);

  // Adds what was found in the elements that follow.
  void append(const Comparison& next, std::size_t max_mismatches);

  // All but the error map.
  template <class Archive>
  void serialize(Archive& archive) {
    archive(actual, expected, slice, criteria, same_shape, elements, mismatched, out_of_tolerance,
            first_mismatches, non_finite_one_side, rounded_to_infinity, non_finite_differing,
            absolute, relative, ulps, ulp_counts, misrounded_ties, errors, rows, worst,
            row_max_axes);
  }
};

// Adds the next count pairs, of the dtypes that comparison names, to the comparison, keeping the first
// max_mismatches of its mismatches.
void compare_elements(const Chunk& actual, const Chunk& expected, std::int64_t count,
                      std::size_t max_mismatches, Comparison& comparison);

// The same for at most kChunk pairs whose sides are these elements, bit by bit, but much faster. Requires that
// NaN equals NaN, or that there is none.
void compare_same_elements(const RawElements& elements, Comparison& comparison);

}  // namespace lnorm
