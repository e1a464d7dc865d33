#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

// Which tensor is compared with which, by their names alone.
namespace lnorm {

// A new name for tensors whose names match.
struct Renaming {
  std::string pattern;
  std::string name;  // with {} and {1}
};

// The tolerance of tensors whose names match.
struct ToleranceOfNames {
  std::string pattern;
  double rtol = 0;
  double atol = 0;
};

// What messages call the rules.
struct RuleNames {
  std::string_view renaming = "renaming";
  std::string_view only = "only";
  std::string_view skip = "skip";
  std::string_view tolerance = "tolerance";
};

struct PairingRules {
  std::vector<Renaming> renamings = {};  // of both sides; of several that match the first
  std::vector<std::string> only = {};    // these and the rest match names after they were renamed
  std::vector<std::string> skip = {};
  std::vector<ToleranceOfNames> tolerances = {};  // of several that match the first
  RuleNames called = {};
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

// Which tensors the rules leave: those of only, without those of skip. Throws Error for a pattern that matches no tensor.
std::vector<bool> chosen_by_name(const NamedTensors& tensors, const PairingRules& rules);

// Throws Error if two tensors of a side get the same name, and for a pattern that matches no tensor.
Pairs pair_by_name(const NamedTensors& actual, const NamedTensors& expected,
                   const PairingRules& rules);

}  // namespace lnorm
