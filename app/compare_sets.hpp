#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "arguments.hpp"
#include "each_tensor.hpp"
#include "lnorm/io/open_tensor.hpp"
#include "lnorm/measure/set_comparison.hpp"
#include "lnorm/pipeline/executor.hpp"

namespace lnorm::app {

// By the names that reports call its tensors.
NamedTensors named(const Selection& selection);

// EXPECTED with {} or {1} in its word: for each tensor of ACTUAL the one that its name stands for, called as that is.
Selection partners_of(const Selection& actual, const std::string& word, const ReadOptions& reading);

// Two tensors that are compared.
struct OpenedPair {
  std::unique_ptr<TensorSource> actual;
  std::unique_ptr<TensorSource> expected;
};

// Cuts both to the rows that the arguments ask for; keeps them whole where their shapes differ. Throws Error.
OpenedPair open_pair(const Arguments& arguments, const Selected& actual, const Selected& expected);

// Compares one tensor with another. tolerance: of their name; null if there is none.
using CompareTwo =
    std::function<Comparison(TensorSource& actual, TensorSource& expected, const InputName& name,
                             const ToleranceOfNames* tolerance, const RunOptions& options)>;

// Takes a pair that has been compared, with its number.
using SeePair = std::function<void(std::size_t number, PairComparison& pair)>;

// Pairs the tensors by name and compares them one after another. A pair that cannot be read is told of, and the
// others are compared, if the arguments say so. Throws Error, also if there is nothing to compare. Of several ranks the
// first gets the result.
SetComparison compare_sets(const Arguments& arguments, const Selection& actual,
                           const Selection& expected, const CompareTwo& compare_two,
                           const SeePair& see);

// What to do next, for the end of the report: the command that shows more of the first pair that differs; or, of sets
// without a common name, the option that pairs them. Empty if there is nothing.
std::string advice_after(const Arguments& arguments, const Selection& actual,
                         const Selection& expected, const SetComparison& set);

}  // namespace lnorm::app
