#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lnorm/core/dtype.hpp"
#include "lnorm/diagnosis/diagnosis.hpp"
#include "lnorm/diagnosis/wrong_kernels.hpp"
#include "lnorm/measure/comparison.hpp"

// Would a test notice? Wrong kernels on the inputs of a test, judged by its criteria.
namespace lnorm {

// A wrong kernel on one input.
struct MutantFormulas {
  std::string id;
  std::string words;
  std::string options;            // of lnorm that give the same; empty if there are none
  std::vector<Variant> variants;  // several where it goes either way; empty: equivalent

  // By formula and options, never by values.
  bool is_equivalent() const noexcept { return variants.empty(); }
};

// The rows of the table that are chosen, in its order.
std::vector<MutantFormulas> mutants_of(const KernelContext& context, const ChooseKernel& choose);

// What became of a variant on one input: what it writes, held against what is right.
struct TriedMutant {
  MutantFormulas formulas;
  std::vector<Comparison> comparisons;  // one a variant
};

// A wrong kernel on all inputs. Of variants, the one that is caught by the fewest.
struct Mutant {
  struct Outcome {
    std::vector<std::string> caught_by;  // names of inputs
    std::int64_t mismatched = 0;
    std::int64_t elements = 0;
    std::optional<double> max_abs;  // nothing: no pair of finite elements
  };

  std::string id;
  std::string words;
  std::string options;
  std::vector<Outcome> outcomes;  // one a variant; empty: equivalent on every input

  bool is_equivalent() const noexcept { return outcomes.empty(); }
  const Outcome& hardest() const;
  bool is_caught() const { return !is_equivalent() && !hardest().caught_by.empty(); }
  bool survives() const { return !is_equivalent() && !is_caught(); }
};

// What a test's inputs and criteria tell apart.
class MutantReport {
 public:
  void add(const std::string& input, const std::vector<TriedMutant>& tried);

  const std::vector<std::string>& inputs() const noexcept { return inputs_; }
  const std::vector<Mutant>& mutants() const noexcept { return mutants_; }
  // Of the first input; others may have another default.
  const Criteria& criteria() const noexcept { return criteria_; }
  std::int64_t tried() const;  // that are not equivalent
  std::vector<const Mutant*> survivors() const;

 private:
  Mutant& mutant_of(const MutantFormulas& formulas);

  std::vector<std::string> inputs_;
  std::vector<Mutant> mutants_;
  Criteria criteria_;
};

}  // namespace lnorm
