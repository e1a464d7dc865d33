#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "lnorm/io/tensor_source.hpp"
#include "lnorm/layout/mask.hpp"
#include "lnorm/measure/comparison.hpp"
#include "lnorm/pipeline/executor.hpp"

namespace lnorm {

// What goes through at once: so many elements of each tensor.
inline constexpr std::int64_t kComparedElements = 32768;

Executor executor_for_comparison(const TensorInfo& actual, int threads);

// How many elements are listed.
struct ListLimits {
  std::size_t mismatches = 5;  // the first ones
  std::size_t worst = 5;
  WorstBy by = WorstBy::row_ulp;
  std::optional<ErrorMap::Size> map = {};  // of the errors, if that is wanted
  bool rows = false;                       // every row that fails
};

// Compares tensors one pair after another: what one pair was read into serves the next.
class Comparer {
 public:
  Comparer();
  Comparer(const Comparer&) = delete;
  Comparer& operator=(const Comparer&) = delete;
  ~Comparer();

  // Walks both tensors together in C order, in fixed memory, their blocks on several threads. Tensors of different shapes are
  // not read. row_axes: along which rows go, if the worst rows are to be listed; else they go along the last axis. A
  // mismatch takes a bit a row and an element of a row. Where blocks do not hold whole rows, the greatest element of
  // each is found first, which takes 8 bytes a row, and a pipe is spooled. Several ranks take some blocks each, if both tensors
  // have random access and no map is wanted; otherwise rank 0 takes all. Rank 0 gets the whole result, the others something.
  // mask: of the elements that are compared; null: all are. Throws Error.
  Comparison compare(TensorSource& actual, TensorSource& expected, const Criteria& criteria,
                     const ListLimits& limits = {}, const RunOptions& options = {},
                     const std::optional<Axes>& row_axes = {},
                     const std::shared_ptr<const Mask>& mask = nullptr);

 private:
  struct Slot;
  class Pair;
  std::vector<Slot> slots_;
};

}  // namespace lnorm
