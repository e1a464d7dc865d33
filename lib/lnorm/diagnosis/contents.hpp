#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lnorm/diagnosis/diagnosis.hpp"

namespace lnorm {

// What the affected elements of a sample hold.
struct Contents {
  std::vector<std::string> lines;       // in words
  std::optional<FormulaFit> unwritten;  // rows, or their last elements, that no kernel has written
};

// Of what no formula explains: zeros, x, or what is no number, and the rows that are the exact ones times one number plus
// another. row_name: of a row's number.
Contents contents_of(const Sample& sample,
                     const std::function<std::string(std::int64_t row)>& row_name);

// The cause where count rows of the sample, or their last elements, are not written. first: of these rows.
FormulaFit unwritten(bool are_whole, const SampleRow& first, std::size_t count,
                     const Sample& sample);

}  // namespace lnorm
