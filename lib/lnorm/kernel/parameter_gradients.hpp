#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "lnorm/kernel/column_gradients.hpp"
#include "lnorm/kernel/gradient.hpp"

namespace lnorm {

struct ParameterGradients {
  std::vector<double> dweight;  // one a column, or one for all
  std::vector<double> dbias;
};

// What is to be gathered.
struct ColumnWishes {
  bool dweight = true;
  bool dbias = true;
  bool uniform =
      false;  // one parameter serves all columns, so that its gradient is the sum over all of them
  DType dtype = DType::float32;  // of both
};

// Reads all rows once more: calls see(slot, read_row, saved) for each, in any order, several at once in slots
// 0 to slots - 1. saved is null if nothing was saved.
struct RowsAgain {
  std::size_t slots = 1;
  std::function<void(const std::function<void(std::size_t slot, const ReadGradientRow& read_row,
                                              const SavedStatistics* saved)>& see)>
      for_each_row;
};

// The gradients, from what was gathered of all rows. Where its bounds leave a result open all rows are read again.
//
// Accuracy: dbias is the exact sum rounded once to dtype. Each term of dweight is truncated to a multiple of
// 2^(e - 160), e the exponent of the largest term of the column; their exact sum is rounded once. So neither depends
// on the order of rows. A column with a term that is not finite gives NaN; without rows the gradients are 0.
ParameterGradients parameter_gradients(const GradientSetting& setting,
                                       const ColumnGradients& gathered, const ColumnWishes& wishes,
                                       const RowsAgain& again);

}  // namespace lnorm
