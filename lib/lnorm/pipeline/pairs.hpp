#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

// Which tensor is compared with which, by their names alone.
namespace lnorm {

// --rename PATTERN=NEW
struct Renaming {
  std::string pattern;
  std::string name;  // with {} and {1}
};

// --tolerance PATTERN=RTOL,ATOL
struct ToleranceOfNames {
  std::string pattern;
  double rtol = 0;
  double atol = 0;
};

struct PairingRules {
  std::vector<Renaming> renamings;  // of both sides; of several that match the first
  std::vector<std::string> only;    // these and the rest match names after they were renamed
  std::vector<std::string> skip;
  std::vector<ToleranceOfNames> tolerances;  // of several that match the first
};

// The tensors of one side.
struct NamedTensors {
  std::string file;  // for messages
  std::vector<std::string> names;
};

struct Pair {
  std::string name;  // after both were renamed
  std::size_t actual;
  std::size_t expected;
  std::optional<std::size_t> tolerance;  // of the rules
};

struct Pairs {
  std::vector<Pair> pairs;  // in the order of the expected tensors
  std::vector<std::string> actual_only;
  std::vector<std::string> expected_only;
};

// Throws Error if two tensors of a side get the same name, and for a pattern that matches no tensor.
Pairs pair_by_name(const NamedTensors& actual, const NamedTensors& expected,
                   const PairingRules& rules);

}  // namespace lnorm
