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

// By the names of its tensors in their files.
NamedTensors named(const Selection& selection);

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

// The command that shows more of the first pair that differs; empty if none does.
std::string details_command(const Arguments& arguments, const Selection& actual,
                            const Selection& expected, const SetComparison& set);

}  // namespace lnorm::app
