#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lnorm/core/dtype.hpp"
#include "lnorm/diagnosis/diagnosis.hpp"
#include "lnorm/diagnosis/wrong_kernels.hpp"
#include "lnorm/measure/comparison.hpp"

// Would a test notice? Wrong kernels on the inputs of a test, judged by its criteria.
namespace lnorm {

// A wrong kernel on one input, and what became of it there: what it writes, compared with what is right.
struct TriedMutant {
  struct Trial {
    const WrongKernel* row = nullptr;  // null for what is in no table
    bool is_backward = false;
    std::vector<std::pair<Quantity, Variant>> formulas = {};  // each quantity that it changes
    std::vector<Comparison> comparisons = {};                 // one a tensor that it writes
    std::string words = {};   // of one of several that have the same id and no row
    bool has_scales = false;  // the last tensor is that of q's scales
  };

  std::string id;
  std::string words;
  std::string options;             // of lnorm that give the same; empty if there are none
  std::vector<Trial> trials = {};  // several where it goes either way; empty: equivalent
};

// The rows of the table that are chosen, in its order: by formula and options, never by values. contexts: one a quantity, of one pass.
std::vector<TriedMutant> mutants_of(std::span<const KernelContext> contexts,
                                    const ChooseKernel& choose);

// A wrong kernel on all inputs. Of its formulas, the one that is caught by the fewest.
struct Mutant {
  struct Outcome {
    const WrongKernel* row = nullptr;
    bool is_backward = false;
    std::vector<std::string> caught_by;  // names of inputs
    std::int64_t mismatched = 0;
    std::int64_t elements = 0;
    std::optional<double> max_abs;  // nothing: no pair of finite elements
    std::string words = {};         // as of Trial
  };

  std::string id;
  std::string first_words;
  std::string options;
  std::vector<Outcome> outcomes;  // one a formula; empty: equivalent on every input

  bool is_equivalent() const noexcept { return outcomes.empty(); }
  const Outcome& hardest() const;
  std::string words() const;  // of that
  bool is_caught() const { return !is_equivalent() && !hardest().caught_by.empty(); }
  bool survives() const { return !is_equivalent() && !is_caught(); }
};

// What a test's inputs and criteria tell apart.
class MutantReport {
 public:
  void add(const std::string& input, const std::vector<TriedMutant>& tried);

  const std::vector<std::string>& inputs() const noexcept { return inputs_; }
  const std::vector<Mutant>& mutants() const noexcept { return mutants_; }
  // Of the first comparison; others may have another default.
  const std::optional<Criteria>& criteria() const noexcept { return criteria_; }
  const std::optional<Criteria>& scale_criteria() const noexcept { return scale_criteria_; }
  std::int64_t tried() const;  // that are not equivalent
  std::vector<const Mutant*> survivors() const;

 private:
  std::vector<std::string> inputs_;
  std::vector<Mutant> mutants_;
  std::optional<Criteria> criteria_;
  std::optional<Criteria> scale_criteria_;
};

}  // namespace lnorm
