#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "lnorm/measure/comparison.hpp"

// Two sets of tensors, compared name by name.
namespace lnorm {

struct PairComparison {
  std::string name;    // of both tensors, after they were renamed
  std::string actual;  // their names in their files
  std::string expected;
  std::optional<Comparison> comparison;  // nothing if one of them could not be read
  std::string error;                     // why not

  bool agrees() const { return comparison && comparison->equal(); }
  bool differs() const { return comparison && !comparison->equal(); }
};

struct SetComparison {
  std::string actual;  // the files or folders
  std::string expected;
  std::vector<PairComparison> pairs;     // in the order of the expected set
  std::vector<std::string> actual_only;  // names that the other set does not have
  std::vector<std::string> expected_only;
  bool common = false;  // these are no differences
  WorstBy by = WorstBy::ulp;

  std::size_t agreeing() const;
  std::size_t differing() const;
  std::size_t unreadable() const { return pairs.size() - agreeing() - differing(); }
  bool differ() const;  // in a pair or in names
  bool equal() const { return !differ() && unreadable() == 0; }

  // The pair that differs first.
  std::optional<std::size_t> first() const;

  // The worst pair: those that differ come before those that agree; of them those with NaN or infinity where the
  // other tensor has another value; of them the one with the greatest distance, of equals the first. Shapes that
  // differ have no distance. Nothing if all distances are 0.
  std::optional<std::size_t> worst() const;
};

}  // namespace lnorm
