#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "lnorm/kernel/column_gradients.hpp"
#include "lnorm/kernel/gradient.hpp"

namespace lnorm {

struct ParameterGradients {
  std::vector<double> dweight;  // one a column that was gathered, or one for all
  std::vector<double> dbias;
};

// What is to be gathered.
struct RequestedColumns {
  bool dweight = true;
  bool dbias = true;
  bool uniform =
      false;  // one parameter serves all columns, so that its gradient is the sum over all of them
  DType dtype = DType::float32;  // of both
};

// Brings together what several processes have found, so that all of them have it: packed() is what this one has,
// append(bytes) adds what another has, and replace(bytes) takes what packed() is in the one that has it all.
using AllReduce = std::function<void(const std::function<std::string()>& packed,
                                     const std::function<void(const std::string&)>& append,
                                     const std::function<void(const std::string&)>& replace)>;

// Reads all rows once more: calls see(slot, read_row, saved) for each, in any order, several at once in slots
// 0 to slots - 1. saved is null if nothing was saved.
struct RowReplay {
  std::size_t slots = 1;
  std::function<void(const std::function<void(std::size_t slot, const ReadGradientRow& read_row,
                                              const SavedStatistics* saved)>& see)>
      for_each_row;
  // If several processes have some of the rows each; all of them call it equally often.
  AllReduce all_reduce = {};
  // What each of them has gathered is of columns of its own, in their order, and all rows; otherwise it is of all
  // columns, and its own rows.
  bool distributes_columns = false;
};

// Calls see, as RowReplay does, for rows that are held. saved: null, or of each.
template <class See>
void replay(std::size_t slot, const RowsIn& x, const RowsIn& dy, const SavedStatistics* saved,
            const See& see) {
  for (std::int64_t r = 0; r < x.rows; ++r) {
    const GradientPart row{row_of(x, r), row_of(dy, r)};
    see(
        slot, [&](const auto& see_part) { see_part(row); }, saved == nullptr ? nullptr : saved + r);
  }
}

// The gradients, from what was gathered of all rows, to which what other processes have of these columns is added. Where
// its bounds leave a result undecided all rows are read again.
//
// Accuracy: dbias is the exact sum rounded once to dtype. Each term of dweight is truncated to a multiple of
// 2^(e - 160), e the exponent of the largest term of the column; their exact sum is rounded once. So neither depends
// on the order of rows. A column with a term that is not finite gives NaN; without rows the gradients are 0.
ParameterGradients parameter_gradients(const GradientSetting& setting, ColumnGradients& gathered,
                                       const RequestedColumns& requested, const RowReplay& again);

// The gradients where elements of rows share weights by a layout: one for each number, in the order of its shape. All rows are
// read, those of the setting's weight do not count. The same accuracy, where a column is all elements that share a weight.
ParameterGradients shared_gradients(const GradientSetting& setting, const AffineLayout& layout,
                                    const RequestedColumns& requested, const RowReplay& again);

}  // namespace lnorm
