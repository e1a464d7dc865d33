#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lnorm/core/text.hpp"
#include "lnorm/diagnosis/estimates.hpp"
#include "lnorm/diagnosis/wrong_kernels.hpp"

// Which wrong kernel gives the output, if any does.
namespace lnorm {

// How a formula fits rows of an output.
struct FormulaSums {
  std::int64_t elements = 0;
  std::int64_t explained = 0;     // within the formula's own bound
  std::int64_t certain = 0;       // of these, those that could have been anything else
  std::int64_t lost = 0;          // of these, NaN as the formula gives
  std::int64_t lost_numbers = 0;  // not finite, and not explained
  double signal = 0;              // sum of squares of the formula's results
  double errors = 0;              // sum of squares of what the output is off by
  double excess = 0;              // of what is beyond half an ulp of it

  bool explains_all() const { return elements > 0 && explained == elements; }
  double share() const;
  double sqnr() const;  // in dB
  double mean_square() const;
  void add(const FormulaSums& other);
};

// Adds a row, if the variant has a result for it. result: a buffer. all_or_nothing: may stop at what is not explained.
void add_fit(const Variant& variant, const Sample& sample, const SampleRow& row, VariantRow& result,
             FormulaSums& sums, bool all_or_nothing = false);

// Adds so many results. all_or_nothing: as of add_fit. An infinite bound: they may be anything.
void add_results(const VariantRow& row, const OutputFormat& output, FormulaSums& sums,
                 bool all_or_nothing = false);

// Whether the results for a row depend on more than x and the rows beside it: on x without the residual.
bool needs_more_than_row(const Variant& variant);

// A formula that gives the output, or some of it.
struct FormulaFit {
  std::vector<std::string> ids = {};  // of its parts
  std::string words = {};
  std::vector<std::string> options = {};  // of lnorm that give the same; empty if there are none
  double explained = 0;                   // share of the elements
  double sqnr = 0;                        // in dB, of the output against the formula
  bool explains_all = false;
  std::vector<std::string> same_as = {};  // which the input cannot tell from it
  Variant variant = {};

  std::string id() const { return joined(ids, "+"); }

  // What was found of all rows.
  void take(const FormulaSums& sums) {
    explained = sums.share();
    sqnr = sums.sqnr();
    explains_all = sums.explains_all();
  }
};

// What explains all that was looked at.
FormulaFit cause(std::string id, std::string words, double sqnr,
                 std::vector<std::string> options = {});

struct Diagnosis {
  std::vector<FormulaFit> explanations;  // best first
  double share_of_exact = 0;             // of the elements, that the formula asked for explains
  // A formula that is closer to an output within rounding than any order of sums brings it: in so many of the rows that tell.
  std::optional<FormulaFit> hidden;
  std::int64_t telling = 0;
  std::int64_t closer = 0;
  StatisticEstimates estimates = {};
  bool has_few_rows =
      false;  // so few that wrong kernels were not combined: some would fit by chance

  bool explains_all() const { return !explanations.empty() && explanations.front().explains_all; }
  // What explains nine elements of ten, and far more of them than the formula asked for does; else null.
  const FormulaFit* most_like() const;
};

// So many are kept: those that explain all elements, and the best of the others.
inline constexpr std::size_t kMaxExplanations = 5;

// A formula that was compared with the output. kernels: rows of the table, or numbers that the output tells, which have no row.
struct Proof {
  std::vector<const NamedKernel*> kernels;
  Variant variant;
  FormulaSums sums = {};
  bool explains = false;
  bool is_far = false;               // as it explains all, but another one is far nearer
  double score = 0;                  // the lower the better, of as many parts
  std::vector<RowBounds> rows = {};  // of gradients, which are held
};

// How many parts a formula has. A number that the output tells counts twice.
std::size_t parts_of(const std::vector<const NamedKernel*>& kernels);

// What rows of the table say together, and how they fit.
FormulaFit described(const Proof& proof, const KernelContext& context);

// The best ones: those that explain all, of them those of the fewest parts and of the best score. Those of the table that the output does
// not tell from the best one are named with it, in the table's order. Sorts the proofs.
std::vector<FormulaFit> ranked(
    std::vector<Proof>& proofs, const KernelContext& context,
    const std::function<bool(const Proof& left, const Proof& right)>& are_alike);

// Whether two formulas give the same row, but for what rounding explains.
bool are_alike(const RowBounds& left, const RowBounds& right);

// Of y. differs: whether the output differs; otherwise only what is closer is looked for.
Diagnosis diagnose(const Sample& sample, const KernelContext& context, const ChooseKernel& choose,
                   bool differs);

// The numbers of a gradient that are looked at, in parts: rows of dx; or of dweight or dbias some parameters, then all others. evaluate
// gives what variants make of a part, at_once of them at most.
struct GradientSample {
  std::vector<std::vector<double>> actual;
  std::function<std::vector<RowBounds>(std::span<const Variant> variants, std::size_t row)>
      evaluate;
  std::size_t at_once = 1;
  double least_share = 0.5;  // a variant that explains less of what is looked at first is given up
};

// Which wrong backward pass gives the gradients, if any does.
Diagnosis diagnose(const GradientSample& sample, const KernelContext& context,
                   const ChooseKernel& choose);

}  // namespace lnorm
