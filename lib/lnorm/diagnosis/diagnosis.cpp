#include "lnorm/diagnosis/diagnosis.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <deque>
#include <set>
#include <sstream>
#include <tuple>
#include <utility>

#include "lnorm/core/non_finite.hpp"
#include "lnorm/core/processors.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/diagnosis/own_sums.hpp"
#include "lnorm/diagnosis/row_estimate.hpp"
#include "lnorm/diagnosis/totals.hpp"

namespace lnorm {

namespace {

constexpr std::size_t kMostParts = 3;
constexpr double kPart = 20;  // what a further part of a name must be worth
constexpr std::size_t kProofs = 64;
constexpr std::size_t kThin = 64;    // of many rows, those that are looked at first
constexpr std::size_t kFewRows = 4;  // each tells two numbers
// Rounding may explain a formula that is this many times as far, in mean squares, as the kernel's own. A number that few rows tell is near by
// chance.
constexpr double kFar = 16;
constexpr std::size_t kFewestRows = 8;  // of different content, for a hidden bug

struct Change {
  const NamedKernel* kernel = nullptr;
  // Of a number that the output tells. Empty: the row of the table makes the change.
  std::function<void(Variant&)> found = {};
};

using Changes = std::vector<const Change*>;

// Rows of the table, the formula that they make together, and how near it is to what the rows tell: not proved yet.
using Candidate = Proof;

// What the parts of a name count in a score. Few digits go before many, whatever has them.
double parts_score(const std::vector<const NamedKernel*>& kernels) {
  constexpr std::size_t kName = 8;
  double sum = kPart * static_cast<double>(parts_of(kernels));
  for (const NamedKernel* const kernel : kernels) {
    if (kernel->row != nullptr) continue;
    const std::string& id = kernel->id;
    const std::size_t digits = id.find('=') == id.npos ? id.size() : id.size() - id.find('=');
    sum += static_cast<double>(2 * (kName + digits));
  }
  return sum;
}

bool is_explained(const VariantRow& row, std::size_t i, const OutputFormat& output) {
  const double actual = row.actual[i];
  if (std::isfinite(actual)) {
    return row.is_bounded ? std::fabs(actual - row.y[i]) <= row.bound[i]
                          : actual == output.rounded(row.y[i]);
  }
  const bool is_nan = std::isnan(actual);
  if (is_nan && (std::isnan(row.y[i]) || std::isinf(row.bound[i]))) return true;
  if (row.saturates) return false;
  if (is_nan ? output.has_infinity() : std::signbit(actual) != std::signbit(row.y[i])) return false;
  return output.overflows(std::fabs(row.y[i]) + (row.is_bounded ? row.bound[i] : 0));
}

double shortest_within(double number, double error) {
  return std::strtod(shortest_text(number, error).c_str(), nullptr);
}
std::string number_text(double number) { return shortest_text(number, 0); }

// What a row tells of the statistics that the kernel had, and the exact ones.
struct ToldRow {
  const SampleRow* row = nullptr;
  RowStatistics statistics;
  double s = 1;
  RowEstimate told = {};

  double used_s() const { return s / told.alpha; }
};

// How far a formula's mean and 1 / s are from what a row tells, in parts of the estimates' errors.
struct Deviation {
  double mean = 0;
  double scale = 0;
  double square() const { return mean * mean + scale * scale; }
  bool is_within() const {
    return std::fabs(mean) <= kWithinErrors && std::fabs(scale) <= kWithinErrors;
  }
};

class Search {
 public:
  Search(const Sample& sample, const KernelContext& context, const ChooseKernel& choose)
      : sample_(sample),
        context_(context),
        setting_(context.setting),
        choose_(choose),
        asked_(asked_for(context.setting)),
        kernels_(choose.kernels(Quantity::y, setting_.normalized_shape)) {
    for (const SampleRow& row : sample_.rows) {
      if (is_lost(row, setting_)) continue;
      are_all_lost_ = false;
      ToldRow told{.row = &row, .statistics = statistics_of(row.x, setting_.formula, row.given)};
      told.s = divisor_of(told.statistics.variance, setting_.formula);
      if (told.s > 0 && std::isfinite(told.s)) rows_.push_back(told);
    }
    const auto is_constant = [](const ToldRow& row) { return row.statistics.variance == 0; };
    are_constant_ = std::ranges::all_of(rows_, is_constant);
    if (!are_constant_) std::erase_if(rows_, is_constant);  // they tell no line
    for (const NamedKernel& kernel : *kernels_) {
      // RMS norm has no mean.
      if (kernel.side == Side::both || setting_.formula.has_mean()) changes_.push_back({&kernel});
    }
    for (const SampleRow& row : sample_.rows) {
      FormulaSums of_row;
      add_fit(asked_, sample_, row, row_, of_row);
      exact_.add(of_row);
      right_rows_ += of_row.explained == of_row.elements ? 1 : 0;
    }
  }

  Diagnosis run(bool differs) {
    Diagnosis result;
    result.share_of_exact = exact_.share();
    if (!differs) {
      find_hidden(result);
      return result;
    }
    try_parts();
    drop_what_few_rows_tell();
    choose_best(result);
    if (!result.explains_all()) {
      // Sums that lose more than those of the arithmetic explain much: they are tried last.
      try_each(KernelPart::own_sums);
      choose_best(result);
    }
    result.has_few_rows = has_few_rows_;
    if (!context_.has_given) {
      result.estimates =
          estimates(told_by(result.explains_all() ? result.explanations.front().variant : asked_));
    }
    return result;
  }

 private:
  // ---- Candidates.

  bool apply(const Change& change, Variant& variant) const {
    if (change.found) {
      change.found(variant);
      return true;
    }
    return change.kernel->change(variant, context_);
  }

  // What they make together, with those of the weight that have been made; nothing where they cannot.
  std::optional<Candidate> combined(const Changes& changes,
                                    const Candidate* affine = nullptr) const {
    Candidate candidate{{}, affine != nullptr ? affine->variant : asked_};
    for (const Change* const change : changes) {
      if (!apply(*change, candidate.variant)) return {};
      candidate.kernels.push_back(change->kernel);
    }
    if (!goes_with_given(candidate.variant)) return {};
    // A mean of other elements is not multiplied as well.
    if (candidate.variant.mean_factor != 1 && !candidate.variant.mean.is_plain()) return {};
    if (affine != nullptr) {
      candidate.kernels.insert(candidate.kernels.end(), affine->kernels.begin(),
                               affine->kernels.end());
    }
    candidate.score = parts_score(candidate.kernels);
    return candidate;
  }

  // If statistics are given, a kernel has no sums that may be wrong.
  bool goes_with_given(const Variant& v) const {
    if (!context_.has_given || v.own_statistics) return true;
    const Formula& asked = setting_.formula;
    const bool has_sums = !v.mean.is_plain() || !v.variance.is_plain() || v.squares_about_zero ||
                          v.mean_in || v.rstd_in || v.has_own_sums() || v.blocks > 0;
    const bool is_of_row = v.result != Variant::Result::previous_row &&
                           v.result != Variant::Result::next_row &&
                           v.result != Variant::Result::twice;
    return !has_sums && is_of_row && v.formula.ddof == asked.ddof &&
           v.formula.has_mean() == asked.has_mean() &&
           (!context_.has_given_rstd ||
            (v.formula.eps == asked.eps && v.formula.eps_on == asked.eps_on));
  }

  static bool is_affine(KernelPart part) {
    return part == KernelPart::weight || part == KernelPart::bias;
  }
  static bool is_of_statistics(KernelPart part) { return part < KernelPart::weight; }

  // ---- What the rows tell.

  // Some elements of each row of rows_; nothing where they are short.
  std::vector<ThinRow> thin_rows(const Variant& variant) const {
    std::vector<ThinRow> result;
    for (const ToldRow& row : rows_) {
      const auto thin =
          thinned(estimated(*row.row, *affine_of(variant, *row.row), row.statistics.mean, row.s));
      if (!thin) return {};
      result.push_back(*thin);
    }
    return result;
  }

  // Rows that are lines in weight_i x_i, if weight and bias are the variant's. Nothing where they are far fewer than half.
  std::vector<ToldRow> told_by(const Variant& variant) const {
    RowEstimator estimator(setting_.kernel, setting_.output, variant.rounding);
    const auto line_of = [&](const ToldRow& row) {
      return estimator.line(
          estimated(*row.row, *affine_of(variant, *row.row), row.statistics.mean, row.s));
    };
    if (rows_.size() > 2 * kThin) {
      std::size_t lines = 0;
      for (std::size_t i = 0; i < kThin; ++i) {
        lines += line_of(rows_[i * rows_.size() / kThin]) ? 1 : 0;
      }
      if (4 * lines < kThin) return {};
    }
    std::vector<ToldRow> result;
    for (const ToldRow& row : rows_) {
      if (const auto line = line_of(row)) {
        result.push_back(row);
        result.back().told = *line;
        add_rounding(variant, estimator, result.back());
      }
    }
    return result;
  }

  // Adds to the errors of what a row tells how far the last rounding alone moves the estimate. Where results lie near the elements,
  // roundings depend on these, and are no noise.
  void add_rounding(const Variant& variant, RowEstimator& estimator, ToldRow& told) const {
    if (item_size(setting_.output.dtype()) > 2) return;
    if (!evaluate(variant, sample_, *told.row, row_)) return;
    for (double& y : row_.y) y = setting_.output.rounded(y);
    const auto affine = affine_of(variant, *told.row);
    EstimatedRow right = estimated(*told.row, *affine, told.statistics.mean, told.s);
    right.actual = row_.y;
    const auto of_right = estimator.line(right);
    if (!of_right) return;
    told.told.alpha_error += std::fabs(of_right->alpha - 1);
    told.told.gamma_error += std::fabs(of_right->gamma);
  }

  // What a sum of n terms loses as a rule, in parts of the sum of their magnitudes: the bound is for the worst.
  double usual_loss(double n) const {
    if (n != usual_n_) {
      usual_n_ = n;
      usual_loss_ = std::sqrt(std::log2(n) + 1) * setting_.kernel.arithmetic.unit;
    }
    return usual_loss_;
  }

  // How far a formula is from what a row tells; nothing where it has no statistics.
  std::optional<Deviation> deviation(const Variant& variant, const ToldRow& told) const {
    const auto used = used_statistics(variant, sample_, *told.row, told.row->x);
    if (!used || !(used->s > 0)) return {};
    const double u = setting_.kernel.arithmetic.unit;
    const double lost = usual_loss(used->row.count);
    const double of_mean =
        (lost * told.statistics.mean_abs + u * std::fabs(used->mean) + told.row->losses.mean) /
        used->s;
    const double variance = std::max(told.statistics.variance, used->row.variance);
    double of_scale =
        2 * lost + 6 * u + told.row->losses.variance / (2 * (variance + setting_.formula.eps));
    // Each of many zeros deviates by the mean, one after another.
    const StatisticOf& of = variant.variance;
    if (of.padded_to > 0 && !of.is_masked && told.row->losses.variance > 0) {
      of_scale += (static_cast<double>(of.padded_to) - used->row.count) * u / 2;
    }
    const double alpha = told.s / used->s;
    const double gamma = (told.statistics.mean - used->mean) / used->s;
    // Rounding on the way to mean and 1 / s.
    const double kept_mean = variant.mean_in || variant.statistics_in ? used->errors.mean : 0;
    return Deviation{
        (told.told.gamma - gamma) /
            std::hypot(told.told.gamma_error, of_mean, 4 * u + kept_mean / used->s),
        (told.told.alpha - alpha) / std::hypot(told.told.alpha_error, of_scale * alpha, 4 * u)};
  }

  // The whole score of a candidate; nothing where it does not hold in nine rows of ten.
  std::optional<double> score(const Candidate& candidate, const std::vector<ToldRow>& told) const {
    // Of many short rows a few tell what is far off.
    if (told.size() > 2 * kThin) {
      std::size_t far = 0;
      for (std::size_t i = 0; i < kThin; ++i) {
        const auto found = deviation(candidate.variant, told[i * told.size() / kThin]);
        far += found && !found->is_within() ? 1 : 0;
        if (4 * far > kThin) return {};
      }
    }
    const double allowed = (1 - kMostRows) * static_cast<double>(told.size());
    double misses = 0;
    double without = 0;  // statistics, as the first row is of the one before it
    double sum = parts_score(candidate.kernels);
    for (const ToldRow& row : told) {
      const auto found = deviation(candidate.variant, row);
      if (!found) {
        ++without;
      } else if (!found->is_within()) {
        if (++misses > allowed) return {};
      } else {
        sum += found->square();
      }
    }
    if (2 * without > static_cast<double>(told.size())) return {};
    return sum;
  }

  // ---- Estimate, then name.

  // A change of weight and bias, and the rows that are lines by it.
  struct AffineChoice {
    Candidate candidate;
    std::vector<ToldRow> told = {};
    double share = 0;  // of the rows that are not lost
  };

  // Those by which most rows are lines; the plainest of those alike come first.
  std::vector<AffineChoice> affine_choices() {
    // Where all rows are lost each change may be the cause.
    if (are_all_lost_) return {{.candidate = {{}, asked_}}};
    std::vector<AffineChoice> found;
    double most = 0;
    const auto fewest = [&] { return std::max(0.5, most - 0.02); };
    // A weight may be long: only the best choices are kept.
    const auto look = [&](Candidate candidate) {
      auto rows = told_by(candidate.variant);
      const double share = share_of(rows.size());
      if (share < fewest()) return;
      found.push_back({std::move(candidate), std::move(rows), share});
      most = std::max(most, share);
      std::erase_if(found, [&](const AffineChoice& one) { return one.share < fewest(); });
    };
    look({{}, asked_});
    // Another weight leaves rows lines if it is one number, or the same with the other sign, and any does in rows of two elements.
    const bool are_flipped =
        !found.empty() && 2 * std::ranges::count_if(found.front().told, [](const ToldRow& row) {
                            return row.told.alpha < 0;
                          }) > std::ssize(found.front().told);
    const bool are_uniform = std::ranges::all_of(rows_, [&](const ToldRow& row) {
      const std::vector<double>& weight = affine_of(*row.row, setting_).weight;
      return std::ranges::adjacent_find(weight, std::not_equal_to<>()) == weight.end();
    });
    const bool are_lines_anyway = are_uniform || are_flipped || context_.row_length() <= 2;
    if (most < kMostRows || are_lines_anyway) {
      find_factor();
      const std::vector<ThinRow> plain = thin_rows(asked_);
      std::vector<ThinChange> of_one;
      for (const Change& change : changes_) {
        if (!is_affine(part_of(change))) continue;
        auto one = combined({&change});
        if (!one) continue;
        of_one.push_back({&change, thin_rows(one->variant)});
        ThinChange& thin = of_one.back();
        thin.leaves_bias = one->variant.affine->bias == asked_.affine->bias;
        for (std::size_t r = 0; r < plain.size(); ++r) {
          thin.leaves_bias &= thin.rows[r].bias == plain[r].bias;
        }
        look(*std::move(one));
      }
      if (most < kMostRows) {
        for (const ThinChange& weight : of_one) {
          for (const ThinChange& bias : of_one) {
            if (part_of(*weight.change) != KernelPart::weight ||
                part_of(*bias.change) != KernelPart::bias ||
                !may_be_lines(weight, bias, fewest())) {
              continue;
            }
            if (auto both = combined({weight.change, bias.change})) look(*std::move(both));
          }
        }
      }
    }
    if (found.empty()) return {};
    const std::size_t plainest =
        found.front().candidate.kernels.size() + (are_lines_anyway ? 1 : 0);
    std::erase_if(found,
                  [&](const AffineChoice& one) { return one.candidate.kernels.size() > plainest; });
    return found;
  }

  struct ThinChange {
    const Change* change;
    std::vector<ThinRow> rows;  // by this change alone
    bool leaves_bias = true;
  };

  // Whether a changed weight and a changed bias may leave so many rows lines. Some elements of each row tell; the pair is not made.
  bool may_be_lines(const ThinChange& weight, const ThinChange& bias, double fewest) const {
    if (!weight.leaves_bias) return true;
    RowEstimator estimator(setting_.kernel, setting_.output, setting_.rounding);
    std::size_t lines = rows_.size();
    for (std::size_t r = 0; r < weight.rows.size() && share_of(lines) >= fewest; ++r) {
      ThinRow both = weight.rows[r];
      both.bias = bias.rows[r].bias;
      if (estimator.is_bent(both)) --lines;
    }
    return share_of(lines) >= fewest;
  }

  double share_of(std::size_t rows) const {
    return rows_.empty() ? 0 : static_cast<double>(rows) / static_cast<double>(rows_.size());
  }

  static KernelPart part_of(const Change& change) {
    return change.found ? KernelPart::weight : change.kernel->row->part;
  }

  // y times one number.
  void find_factor() {
    double ay = 0;
    double yy = 0;
    double squares = 0;
    double count = 0;
    VariantRow row;
    for (const ToldRow& told : rows_) {
      const SampleRow& sampled = *told.row;
      if (!evaluate(asked_, sample_, sampled, row)) continue;
      for (std::size_t i = 0; i < row.y.size(); ++i) {
        if (!sampled.is_kept(i)) continue;
        ay += sampled.actual[i] * row.y[i];
        yy += row.y[i] * row.y[i];
        squares += std::pow(row.bound[i] * row.y[i], 2);
        count += 1;
      }
    }
    // Equal numbers are off alike, and there are few different ones of 16 bits.
    const double numbers = std::ldexp(1.0, setting_.output.precision());
    const double repeated = std::max(1.0, count / numbers);
    if (yy > 0) add_factor(ay / yy, 3 * std::sqrt(repeated * squares / 3) / yy);
  }

  // The number itself, the root of a number and the quotient by one, if these are plainer or as plain.
  void add_factor(double factor, double error) {
    const double size = std::fabs(factor);
    const double number = shortest_within(factor, error);
    const auto add_plain = [&](double plain, double error_of_plain, double value) {
      const bool is_plain = number_text(plain).size() <= number_text(number).size();
      const double as_told = shortest_within(std::copysign(value, factor), 1e-9 * value);
      if (is_plain && as_told != number && is_told(plain, error_of_plain)) try_factor(as_told, 0);
    };
    const double square = shortest_within(size * size, 2 * size * error);
    const double inverse = shortest_within(1 / size, error / (size * size));
    add_plain(square, 2 * size * error, std::sqrt(square));
    add_plain(inverse, error / (size * size), 1 / inverse);
    if (std::fabs(factor - 1) > error) try_factor(number, error);
  }

  void try_factor(double number, double error) {
    const bool is_sign = std::fabs(number) == 1;
    const bool is_normal = std::fabs(number) >= setting_.kernel.arithmetic.smallest_normal;
    if (is_sign || !std::isfinite(number) || !is_normal) return;
    // Of what was rounded before.
    const OutputFormat& output = setting_.output;
    if (const Change* const later =
            add_found("factor=", number, error, "y is multiplied by", "", [=](Variant& v) {
              v.y_in = output;
              v.y_factor = number;
            })) {
      if (const auto candidate = combined({later})) prove(*candidate);
    }
    add_found("factor=", number, error, "y is multiplied by", "", [number](Variant& v) {
      const auto scale = [number](AffineNumbers& numbers) { numbers.scale(number); };
      AffineNumbers numbers = *v.affine;
      scale(numbers);
      v.affine = std::make_shared<AffineNumbers>(std::move(numbers));
      v.affine_changes.emplace_back(scale);
    });
  }

  // Several rows tell any number. One row tells a plain one alone: a twentieth of all numbers at most are as near to one so plain.
  bool is_told(double number, double error) const {
    constexpr double kChance = 0.05;
    std::string digits = number_text(number);
    std::erase_if(digits, [](char one) { return one < '0' || one > '9'; });
    const auto count = digits.size() - std::min(digits.size(), digits.find_first_not_of('0'));
    const double spacing =
        std::pow(10, std::floor(std::log10(std::fabs(number))) + 1 - static_cast<double>(count));
    return rows_.size() > 1 || count == 1 || 2 * error <= kChance * spacing;
  }

  // A number that the output tells, within an error.
  const Change* add_found(const std::string& id, double number, double error,
                          std::string_view words, const std::string& option,
                          std::function<void(Variant&)> change) {
    NamedKernel kernel{.id = id + number_text(number),
                       .words = concat(words, ' ', number_text(number)),
                       .options = option};
    // In few rows a number that is nearly right may be what sums lose. A nearly right eps always is.
    const bool is_eps = id == "eps=";
    const double nearly = is_eps ? 0.02 : id == "variance-factor=" ? 0.01 : 0.005;
    const double right = is_eps ? setting_.formula.eps : 1;
    const bool is_nearly = std::fabs(number - right) <= nearly * std::fabs(right);
    const bool are_few = sample_.rows.size() < kFewRows || is_eps;
    if (!choose_(kernel.id) || (is_nearly && are_few) || !is_told(number, error)) {
      return nullptr;
    }
    changes_.push_back({&found_.emplace_back(std::move(kernel)), std::move(change)});
    return &changes_.back();
  }

  // The mean square of what the line of each row leaves.
  double square_of_lines(const AffineChoice& choice) const {
    double sum = 0;
    double count = 0;
    for (const ToldRow& told : choice.told) {
      const SampleRow& row = *told.row;
      const auto affine = affine_of(choice.candidate.variant, row);
      for (std::size_t i = 0; i < row.x.size(); ++i) {
        if (!row.is_kept(i)) continue;
        const double xhat = (row.x[i] - told.statistics.mean) / told.s;
        const double y =
            affine->weight[i] * (told.told.alpha * xhat + told.told.gamma) + affine->bias[i];
        sum += std::pow(row.actual[i] - y, 2);
        count += 1;
      }
    }
    return count == 0 ? kInfinity : sum / count;
  }

  // Where one part explains all, and not from far, nothing is plainer: combinations are not tried then.
  void try_parts() {
    const std::vector<AffineChoice> choices = affine_choices();
    // Formulas that are no line in a row, or change bytes: each by itself.
    try_each(KernelPart::alone);
    if (are_constant_) try_each(KernelPart::bias);
    const std::size_t before = proofs_.size();
    const std::vector<const Change*> singles = changes_of_statistics();
    for (const AffineChoice& choice : choices) {
      Changes chosen;
      add_combinations(choice.candidate, choice.told, singles, 0, 1, chosen);
    }
    prove_nearest();
    std::optional<double> near;  // which takes a pass over the rows
    const bool is_told = std::ranges::any_of(proofs_, [&](const Proof& proof) {
      if (!proof.explains || parts_of(proof.kernels) != 1) return false;
      if (!near) near = choices.empty() ? kInfinity : kFar * square_of_lines(choices.front());
      return !is_far(proof, *near);
    });
    // Where few rows are wrong, parts are not combined: together they would change the others. A number may change few.
    const bool are_few_wrong =
        static_cast<double>(right_rows_) >= kMostRows * static_cast<double>(sample_.rows.size());
    if (is_told) return;
    candidates_.clear();
    if (!are_few_wrong) proofs_.resize(before);
    for (const auto& [candidate, told, share] : choices) {
      if (are_few_wrong) {
        find_numbers(candidate, told, kInfinity);
        continue;
      }
      // Each row tells two numbers. By chance some three parts explain those of a few rows, and two those of two rows of 16 bits.
      const bool is_narrow = setting_.output.precision() <= 11;
      const bool are_rough = is_narrow && told.size() <= 2;
      const std::size_t few = is_narrow ? 2 * kFewRows : kFewRows;
      const std::size_t most = told.size() < few ? kMostParts - 1 : kMostParts;
      const std::size_t rough = candidate.kernels.size() + 1;
      has_few_rows_ = has_few_rows_ || (are_rough && rough < most && !told.empty());
      if (are_rough && candidate.kernels.empty()) try_std_plus_eps(candidate, told);
      // A number that two such rows tell stands alone.
      if (are_rough && parts_of(candidate.kernels) > candidate.kernels.size()) {
        take_combination(candidate, told, {});
        continue;
      }
      name_statistics(candidate, told, told.empty() ? 1 : are_rough ? std::min(rough, most) : most);
    }
    prove_nearest();
  }

  void prove_nearest() {
    std::ranges::stable_sort(candidates_, {}, &Candidate::score);
    if (candidates_.size() > kProofs) candidates_.resize(kProofs);
    for (const Candidate& candidate : candidates_) {
      prove(candidate, &candidate == &candidates_.front());
    }
  }

  std::vector<const Change*> changes_of_statistics() const {
    std::vector<const Change*> found;
    for (const Change& change : changes_) {
      if (!change.found && is_of_statistics(part_of(change))) found.push_back(&change);
    }
    return found;
  }

  // x.std() + eps makes both mistakes at once.
  void try_std_plus_eps(const Candidate& affine, const std::vector<ToldRow>& told) {
    Changes both;
    for (const Change* const change : changes_of_statistics()) {
      if (change->kernel->id == "eps-on-std" || change->kernel->id == "ddof-1")
        both.push_back(change);
    }
    if (both.size() == 2) take_combination(affine, told, both);
  }

  void name_statistics(const Candidate& affine, const std::vector<ToldRow>& told,
                       std::size_t most_parts) {
    const std::size_t before = candidates_.size();
    Changes chosen;
    add_combinations(affine, told, changes_of_statistics(), 0, most_parts, chosen);
    double best = kInfinity;
    for (std::size_t i = before; i < candidates_.size(); ++i) {
      best = std::min(best, candidates_[i].score);
    }
    if (const auto plain = score(affine, told)) best = std::min(best, *plain);
    // Few rows are near to other parts by chance: such a score is no limit.
    if (told.size() < kFewRows) best = kInfinity;
    find_numbers(affine, told, best);
  }

  void add_combinations(const Candidate& affine, const std::vector<ToldRow>& told,
                        const std::vector<const Change*>& all, std::size_t from,
                        std::size_t most_parts, Changes& chosen) {
    if (!chosen.empty() || !affine.kernels.empty()) take_combination(affine, told, chosen);
    if (chosen.size() + affine.kernels.size() >= most_parts) return;
    for (std::size_t i = from; i < all.size(); ++i) {
      if (!chosen.empty()) {
        const KernelPart last = part_of(*chosen.back());
        const KernelPart next = part_of(*all[i]);
        // The mean may have other elements than the variance.
        const bool is_other_side = told.size() > 2 && chosen.back()->kernel->side == Side::mean &&
                                   all[i]->kernel->side == Side::variance && last == next;
        if (next == last && !is_other_side) continue;
      }
      chosen.push_back(all[i]);
      add_combinations(affine, told, all, i + 1, most_parts, chosen);
      chosen.pop_back();
    }
  }

  // most: the score above which it is not taken.
  void take_combination(const Candidate& affine, const std::vector<ToldRow>& told,
                        const Changes& chosen, double most = kInfinity) {
    auto candidate = combined(chosen, &affine);
    if (!candidate) return;
    // As many free numbers as the rows tell fit anything.
    const auto free = std::ranges::count_if(
        candidate->kernels, [](const NamedKernel* one) { return one->row == nullptr; });
    if (free >= 2 * std::max<std::ptrdiff_t>(1, std::ssize(told))) return;
    const auto found = score(*candidate, told);
    if (!found || *found > most) return;
    candidate->score = *found;
    candidates_.push_back(*std::move(candidate));
  }

  // all_tell: rows that tell nothing count as well; else they are left out.
  template <class Of>
  static std::optional<EstimatedNumber> number_of(const std::vector<ToldRow>& told, Of of,
                                                  bool all_tell = true) {
    std::vector<EstimatedNumber> all;
    all.reserve(told.size());
    for (const ToldRow& row : told) all.push_back(of(row));
    if (!all_tell) std::erase_if(all, [](const auto& one) { return std::isnan(one.number); });
    return lnorm::number_of(all);
  }

  // How far off a row's 1 / s may be, relatively, by what it tells and by what sums lose.
  double scale_error(const ToldRow& row) const {
    const double u = setting_.kernel.arithmetic.unit;
    return std::hypot(row.told.alpha_error / std::fabs(row.told.alpha),
                      2 * usual_loss(row.statistics.count) + 6 * u,
                      row.row->losses.variance / (2 * row.s * row.s));
  }

  // What the mean was multiplied by, and how far off that may be.
  EstimatedNumber mean_factor(const ToldRow& row) const {
    const double s = row.used_s();
    const double mean = row.statistics.mean;
    const double lost =
        usual_loss(row.statistics.count) * row.statistics.mean_abs + row.row->losses.mean;
    const double error =
        std::hypot(row.told.gamma_error * s, lost, 4 * setting_.kernel.arithmetic.unit * s);
    return {1 - row.told.gamma * s / mean, error / std::fabs(mean)};
  }

  // What the rows tell of the statistics.
  StatisticEstimates estimates(const std::vector<ToldRow>& told) const {
    const Formula& formula = setting_.formula;
    if (share_of(told.size()) < kMostRows || formula.eps_on != EpsOn::variance) return {};
    std::vector<ToldStatistics> rows;
    for (const ToldRow& row : told) {
      const double square = std::pow(row.used_s(), 2);
      rows.push_back({row.statistics.mean,
                      row.statistics.variance,
                      mean_factor(row),
                      {square, 2 * square * scale_error(row)}});
    }
    return estimate_statistics(rows, formula.eps, formula.has_mean());
  }

  // eps, the divisor of the variance, and a factor of the mean, as the rows tell them.
  void find_numbers(const Candidate& affine, const std::vector<ToldRow>& told, double best) {
    // One row tells a number or a part, and not both.
    if (context_.has_given || (told.size() < 2 && !affine.kernels.empty())) return;
    const Formula& formula = setting_.formula;
    const auto take = [&](const Change* change) {
      if (change != nullptr) take_combination(affine, told, {change}, best);
    };
    const bool on_std = formula.eps_on == EpsOn::std;
    const bool on_max = formula.eps_on == EpsOn::max;
    const auto eps = number_of(
        told,
        [&](const ToldRow& row) {
          const double s = row.used_s();
          const double root = std::sqrt(row.statistics.variance);
          const double error = scale_error(row) * std::fabs(s);
          if (on_max) return EstimatedNumber{s > root + kWithinErrors * error ? s : kNan, error};
          return on_std
                     ? EstimatedNumber{s - root, error}
                     : EstimatedNumber{s * s - row.statistics.variance, 2 * std::fabs(s) * error};
        },
        !on_max);
    if (eps && eps->number > 3 * eps->error) {
      const double number = shortest_within(eps->number, 3 * eps->error);
      take(add_found("eps=", number, 3 * eps->error, "eps is", eps_option(number_text(number)),
                     [number](Variant& v) { v.formula.eps = number; }));
    }
    const auto divisor = number_of(told, [&](const ToldRow& row) {
      const double s = row.used_s();
      const double variance = variance_of(s, formula);
      const double freedom = formula.freedom(row.statistics.count);
      const double number = freedom * row.statistics.variance / variance;
      return EstimatedNumber{
          number, std::fabs(number) * 2 * scale_error(row) * std::fabs(s * s / variance)};
    });
    if (divisor && divisor->number > 0.5 && divisor->number < 0x1p53) {
      const double number = std::round(divisor->number);
      const std::int64_t n = context_.row_length();
      const double freedom = formula.freedom(static_cast<double>(n));
      const double error = 3 * freedom * divisor->error / std::pow(divisor->number, 2);
      const double factor = shortest_within(freedom / divisor->number, error);
      if (std::fabs(number - divisor->number) <= 3 * divisor->error && divisor->error < 1) {
        take(add_found(
            "divisor=", number, 3 * divisor->error, "the variance is divided by", "",
            [number, n](Variant& v) { v.formula.ddof = n - static_cast<std::int64_t>(number); }));
      } else if (divisor->error < 0.01 * divisor->number) {
        take(add_found("variance-factor=", factor, error, "the variance is multiplied by", "",
                       [factor](Variant& v) { v.variance_factor = factor; }));
      }
    }
    if (formula.has_mean()) {
      const auto factor = number_of(told, [&](const ToldRow& row) { return mean_factor(row); });
      if (factor && factor->error < 0.1) {
        // In 16 bits rows have errors in common: the plain number may be a little farther.
        std::set<double> numbers;
        for (const double errors : {3, 12}) {
          numbers.insert(shortest_within(factor->number, errors * factor->error));
        }
        for (const double number : numbers) {
          if (number == 0 || number == 1 || number == 2) continue;
          const double error = 3 * factor->error;
          take(add_found("mean-factor=", number, error, "the mean is multiplied by", "",
                         [number](Variant& v) { v.mean_factor = number; }));
          take(add_found("mean-factor=", number, error,
                         "in the variance as well, the mean is multiplied by", "",
                         [number](Variant& v) {
                           v.mean_factor = number;
                           v.center = Variant::Center::subtracted;
                         }));
        }
      }
    }
    const auto factor = number_of(told, [&](const ToldRow& row) {
      return EstimatedNumber{row.told.alpha, scale_error(row) * std::fabs(row.told.alpha)};
    });
    if (factor && !context_.has_bias && affine.kernels.empty()) {
      const std::size_t count = changes_.size();
      add_factor(factor->number, 3 * factor->error);
      // Each number has a change of the results and one of weight and bias.
      for (std::size_t i = count + 1; i < changes_.size(); i += 2) take(&changes_[i]);
    }
    find_lengths(affine, told, best);
  }

  // Padded lengths that the rows tell and the table does not have; eps or ddof may be another beside them.
  void find_lengths(const Candidate& affine, const std::vector<ToldRow>& told, double best) {
    const auto n = static_cast<double>(context_.row_length());
    const StatisticEstimates found = estimates(told);
    std::set<double> lengths;
    const auto look = [&](const std::optional<EstimatedNumber>& of, double length, double error) {
      const double whole = std::round(length);
      const bool is_whole = std::fabs(length - whole) <= 0.02 + 3 * error && error < 0.3;
      if (of && of->plain && is_whole && whole > n && whole < 0x1p53) lengths.insert(whole);
    };
    for (const auto& factor : {found.mean_factor, found.variance_factor}) {
      if (factor) look(factor, n / factor->number, n * factor->error / std::pow(factor->number, 2));
    }
    if (const auto& k = found.mean_square_factor) {
      look(k, n * (1 + k->number), n * k->error);
      // The divisor of the variance is another, as by ddof.
      if (const auto& f = found.variance_factor) {
        look(k, n + k->number * n / f->number, n * k->error / f->number);
      }
    }
    Changes beside;
    for (const Change* const change : changes_of_statistics()) {
      const KernelPart part = part_of(*change);
      const bool is_number = part == KernelPart::ddof || part == KernelPart::eps_value;
      if (is_number || part == KernelPart::eps_place) beside.push_back(change);
    }
    for (const double length : lengths) {
      for (const NamedKernel& kernel : padded_kernels(static_cast<std::int64_t>(length))) {
        const bool is_tried = std::ranges::any_of(changes_, [&](const Change& one) {
          return one.kernel->row != nullptr && one.kernel->id == kernel.id;
        });
        if (is_tried || !choose_(kernel.id)) continue;
        NamedKernel& number = found_.emplace_back(kernel);
        number.row = nullptr;
        changes_.push_back({&number, [this, kernel](Variant& v) { kernel.change(v, context_); }});
        const Change* const padded = &changes_.back();
        take_combination(affine, told, {padded}, best);
        for (const Change* const other : beside) {
          take_combination(affine, told, {other, padded}, best);
        }
      }
    }
  }

  // ---- Proof.

  FormulaSums fit(const Variant& variant, bool all_or_nothing) const {
    FormulaSums result;
    const std::size_t first = all_or_nothing ? refuting_ : 0;
    for (std::size_t k = 0; k < sample_.rows.size(); ++k) {
      const std::size_t r = (first + k) % sample_.rows.size();
      add_fit(variant, sample_, sample_.rows[r], row_, result, all_or_nothing);
      if (!all_or_nothing || result.explained == result.elements) continue;
      refuting_ = r;
      break;
    }
    return result;
  }

  // What the formula asked for makes of elements for which the variant has a number.
  FormulaSums fit_of_asked(const Variant& variant) const {
    FormulaSums result;
    VariantRow asked;
    for (const SampleRow& sampled : sample_.rows) {
      if (!evaluate(variant, sample_, sampled, row_) ||
          !evaluate(asked_, sample_, sampled, asked)) {
        continue;
      }
      for (std::size_t i = 0; i < asked.y.size(); ++i) {
        if (std::isinf(row_.bound[i])) asked.bound[i] = kInfinity;
      }
      add_results(asked, setting_.output, result);
    }
    return result;
  }

  // y that goes through a wider dtype is told by the elements that come out otherwise than by one rounding. Bounds do not tell it: a tie may
  // go either way.
  bool is_rounded_twice(const Variant& variant) const {
    const OutputFormat& output = setting_.output;
    if (!variant.y_in || variant.y_in->precision() <= output.precision()) return true;
    Variant once = variant;
    once.y_in.reset();
    std::int64_t other = 0;
    std::int64_t found = 0;
    for (const SampleRow& sampled : sample_.rows) {
      if (!evaluate(once, sample_, sampled, row_)) continue;
      for (std::size_t i = 0; i < row_.y.size(); ++i) {
        const double twice = output.rounded(variant.y_in->rounded(row_.y[i]));
        if (!sampled.is_kept(i) || twice == output.rounded(row_.y[i])) continue;
        ++other;
        found += sampled.actual[i] == twice ? 1 : 0;
      }
    }
    return static_cast<double>(found) >= kMostRows * static_cast<double>(other);
  }

  // Whether the output is nearer to the variant than to the formula asked for. Elements count in which the two differ by more than a kernel's
  // own operations. What is off in one row alone has another cause.
  bool is_nearer_where_they_differ(const Variant& variant) const {
    constexpr double kMost = 0.75;
    using Result = Variant::Result;
    const bool has_own_rounding = variant.result == Result::truncated ||
                                  variant.result == Result::away || variant.y_in ||
                                  variant.rereads_output();
    if (has_own_rounding) return true;
    const OutputFormat& output = setting_.output;
    std::int64_t differing = 0;
    std::int64_t nearer = 0;
    VariantRow asked;
    for (const SampleRow& row : sample_.rows) {
      if (!evaluate(variant, sample_, row, row_) || !evaluate(asked_, sample_, row, asked)) {
        continue;
      }
      for (std::size_t i = 0; i < row_.y.size(); ++i) {
        const double own = asked.bound[i] - output.half_ulp(asked.y[i]);
        const bool differs = row.is_kept(i) && std::fabs(row_.y[i] - asked.y[i]) > own &&
                             output.rounded(row_.y[i]) != output.rounded(asked.y[i]);
        const bool is_lost = !std::isfinite(row.actual[i]);
        if ((!differs && !is_lost) || std::isinf(row_.bound[i])) continue;
        ++differing;
        const bool is_nearer =
            std::fabs(row.actual[i] - row_.y[i]) < std::fabs(row.actual[i] - asked.y[i]);
        nearer += is_nearer || is_lost ? 1 : 0;
      }
    }
    return differing > 0 && static_cast<double>(nearer) >= kMost * static_cast<double>(differing);
  }

  bool is_explanation(const Variant& variant, const FormulaSums& fit) const {
    // A variant that gives the same where the formula asked for is right explains nothing. What is not finite is in no sum of squares.
    const bool has_all = fit.certain == exact_.elements;
    const FormulaSums asked = has_all ? exact_ : fit_of_asked(variant);
    const bool is_nearer = (asked.excess > 0 && fit.excess <= asked.excess / 4) ||
                           asked.lost_numbers > fit.lost_numbers;
    return fit.explains_all() && (fit.certain > 0 || fit.lost > 0) &&
           2 * fit.certain >= fit.elements - fit.lost && is_nearer && is_rounded_twice(variant) &&
           is_nearer_where_they_differ(variant);
  }

  // Those that do not explain all are of no use, but for the nearest.
  void prove(const Candidate& candidate, bool is_nearest = false) {
    if (!is_nearest && !fit(candidate.variant, true).explains_all()) return;
    Proof proof = candidate;
    proof.sums = fit(candidate.variant, false);
    const FormulaSums& found = proof.sums;
    if (found.elements == 0) return;
    // A whole arithmetic is as far from the output as the formula asked for: other things speak for it.
    proof.explains =
        proof.variant.arithmetic ? found.explains_all() : is_explanation(proof.variant, found);
    // A bound that is wide enough covers what is no such output as well.
    if (proof.explains || !found.explains_all()) proofs_.push_back(std::move(proof));
  }

  // Narrow sums lose in all rows; a whole narrow arithmetic rounds each element on the way, so that rows are no lines.
  bool may_be_noise(const Variant& variant) {
    if (variant.summed_in && 2 * right_rows_ >= sample_.rows.size()) return false;
    return !variant.arithmetic || 2 * share_of(told_by(asked_).size()) < 1;
  }

  // An activation takes longer than the norm: it is tried where some elements of a row are like it.
  bool may_be_activated(const Variant& variant) const {
    constexpr std::size_t kSome = 16;
    constexpr double kNear = 0.01;
    const SampleRow& row = sample_.rows.front();
    if (variant.activation == nullptr || row.x.size() <= kSome) return true;
    if (activated_.y.empty() && !evaluate(asked_, sample_, row, activated_)) return true;
    std::size_t near = 0;
    for (std::size_t k = 0; k < kSome; ++k) {
      const std::size_t i = k * row.x.size() / kSome;
      const double y = variant.activation(activated_.y[i]);
      const double most = kNear * (1 + std::fabs(y)) + 4 * setting_.output.half_ulp(y);
      near += !(std::fabs(row.actual[i] - y) > most) || !row.is_kept(i) ? 1 : 0;
    }
    return 4 * near >= 3 * kSome;
  }

  void try_each(KernelPart part) {
    for (const Change& change : changes_) {
      if (change.found || part_of(change) != part) continue;
      const auto candidate = combined({&change});
      if (!candidate) continue;
      if (!may_be_activated(candidate->variant)) continue;
      const bool is_noise = part == KernelPart::own_sums;
      if (is_noise && !may_be_noise(candidate->variant)) continue;
      if (!is_noise || is_evident(candidate->variant, sample_)) prove(*candidate);
    }
  }

  // Whether something nearer is the cause. It is not asked of sums of other elements, which lose alike in all rows, nor of statistics in a
  // narrow dtype, which may be rounded either way.
  bool is_far(const Proof& proof, double near) const {
    const Variant& v = proof.variant;
    const bool is_exact = !v.mean_in && !v.rstd_in && !v.statistics_in && v.mean.is_plain() &&
                          v.variance.is_plain() && rows_.size() >= kFewRows;
    return is_exact && proof.sums.mean_square() > near;
  }

  // One pass may lose anything in a few rows: there several parts fit by chance, and in one or two rows a number does.
  void drop_what_few_rows_tell() {
    constexpr std::size_t kOfNumber = 2;
    if (rows_.size() >= 2 * kFewRows || !setting_.formula.has_mean() || context_.has_given) return;
    Variant one_pass = asked_;
    one_pass.one_pass = true;
    const auto is_chance = [&](const Proof& proof) {
      const bool has_number = parts_of(proof.kernels) > proof.kernels.size();
      return proof.explains &&
             (proof.kernels.size() > 1 || (has_number && rows_.size() <= kOfNumber));
    };
    if (std::ranges::none_of(proofs_, is_chance) || !fit(one_pass, true).explains_all()) return;
    std::erase_if(proofs_, is_chance);
  }

  // Whether two formulas give the same rows, but for what rounding explains.
  bool are_alike(const Variant& a, const Variant& b) const {
    VariantRow& left = row_;
    VariantRow right;
    for (const SampleRow& sampled : sample_.rows) {
      const bool has_left = evaluate(a, sample_, sampled, left);
      const bool has_right = evaluate(b, sample_, sampled, right);
      if (has_left && has_right && !lnorm::are_alike(left, right)) return false;
    }
    return true;
  }

  void choose_best(Diagnosis& result) {
    double least = kInfinity;
    for (const Proof& proof : proofs_) {
      // Results that are rounded on the way have no error left.
      if (proof.explains && !proof.variant.y_in) {
        least = std::min(least, proof.sums.mean_square());
      }
    }
    for (Proof& proof : proofs_) proof.is_far = is_far(proof, kFar * least);
    result.explanations = ranked(proofs_, context_, [this](const Proof& left, const Proof& right) {
      return are_alike(left.variant, right.variant);
    });
  }

  // ---- Hidden bugs: within rounding, but nearer to a listed formula than any order of sums comes.

  // Rows alike up to scale count once.
  static std::vector<double> content_of(const ToldRow& told) {
    constexpr std::size_t kLooked = 16;
    std::vector<double> values = told.row->x;
    for (double& value : values) value = (value - told.statistics.mean) / told.s;
    std::sort(values.begin(), values.end());
    std::vector<double> content;
    for (std::size_t i = 0; i < values.size();
         i += std::max<std::size_t>(1, values.size() / kLooked)) {
      content.push_back(std::round(values[i] * 1e4));
    }
    return content;
  }

  // The square of the deviation of statistics from what a row tells, in the units of hidden bugs.
  double square_of(const ToldRow& told, double mean, double s) const {
    const double u = setting_.kernel.arithmetic.unit;
    const double of_scale = told.told.alpha_error + 4 * u;
    const double of_mean = told.told.gamma_error + 4 * u * (1 + told.statistics.mean_abs / told.s);
    return std::pow((told.told.alpha - told.s / s) / of_scale, 2) +
           std::pow((told.told.gamma - (told.statistics.mean - mean) / s) / of_mean, 2);
  }

  static bool can_hide(const Change& change) {
    const KernelPart part = part_of(change);
    const WrongKernel& row = *change.kernel->row;
    return change.kernel->side == Side::both &&
           (part == KernelPart::eps_place || part == KernelPart::eps_value ||
            part == KernelPart::ddof || part == KernelPart::rounding || row.id == "rms" ||
            row.id == "layer-norm" || row.id.find("-P") != row.id.npos);
  }

  void find_hidden(Diagnosis& result) const {
    std::vector<ToldRow> told = told_by(asked_);
    // Beside a large bias rounding swallows xhat: then errors are no noise.
    constexpr double kSignal = 4;
    std::erase_if(told, [](const ToldRow& row) { return row.told.signal < kSignal; });
    const double u = setting_.kernel.arithmetic.unit;
    double of_exact = 0;
    for (const ToldRow& row : told) of_exact += square_of(row, row.statistics.mean, row.s);
    if (told.size() < kFewestRows || of_exact <= 9 * static_cast<double>(told.size())) return;
    std::set<std::vector<double>> contents;
    std::erase_if(told,
                  [&](const ToldRow& row) { return !contents.insert(content_of(row)).second; });
    if (told.size() < kFewestRows) return;
    // What is asked for: the exact statistics, and those of every order.
    std::vector<double> sums;
    std::vector<double> least;
    struct Lost {
      double mean;
      double scale;
    };
    std::vector<Lost> lost;
    for (const ToldRow& row : told) {
      std::vector<OrderStatistics> orders{{row.statistics.mean, row.statistics.variance}};
      if (!context_.has_given) {
        const auto more = statistics_by_orders(row.row->x, setting_.formula,
                                               setting_.kernel.arithmetic, setting_.summed_shape());
        orders.insert(orders.end(), more.begin(), more.end());
      }
      sums.resize(std::max(sums.size(), orders.size()));
      double of_row = kInfinity;
      Lost worst{0, 0};
      for (std::size_t k = 0; k < orders.size(); ++k) {
        const double s = divisor_of(std::max(orders[k].variance, 0.0), setting_.formula);
        const double square = square_of(row, orders[k].mean, s);
        sums[k] += std::isfinite(square) ? square : 1e300;
        of_row = std::min(of_row, square);
        worst.mean = std::max(worst.mean, std::fabs(orders[k].mean - row.statistics.mean) / row.s);
        worst.scale = std::max(worst.scale, std::fabs(s - row.s) / row.s);
      }
      least.push_back(of_row);
      lost.push_back(worst);
    }
    const auto rows = static_cast<double>(told.size());
    const double base = *std::min_element(sums.begin(), sums.end());
    if (base <= 9 * rows) return;
    double best = kInfinity;
    const auto look = [&](const Changes& changes) {
      const auto candidate = combined(changes);
      if (!candidate) return;
      std::int64_t near = 0;
      std::int64_t good = 0;
      std::int64_t far = 0;
      double sum = 0;
      for (std::size_t r = 0; r < told.size(); ++r) {
        const ToldRow& row = told[r];
        const auto used = used_statistics(candidate->variant, sample_, *row.row, row.row->x);
        if (!used || !(used->s > 0)) return;
        const double square = square_of(row, used->mean, used->s);
        sum += square;
        near += square < least[r] ? 1 : 0;
        good += square < 18 ? 1 : 0;
        const bool is_far =
            std::fabs(row.s / used->s - 1) > 2 * lost[r].scale + 4 * u ||
            std::fabs(row.statistics.mean - used->mean) / row.s > 2 * lost[r].mean + 4 * u;
        far += is_far ? 1 : 0;
      }
      const auto fewest = static_cast<double>(std::min({near, good, far}));
      // A further part must be worth it.
      const double weighted = sum * static_cast<double>(changes.size());
      if (fewest < kMostRows * rows || base <= 4 * sum || weighted >= best) return;
      best = weighted;
      result.hidden = described(*candidate, context_);
      result.telling = std::ssize(told);
      result.closer = near;
    };
    for (const Change& change : changes_) {
      if (change.found || !can_hide(change)) continue;
      look({&change});
      if (part_of(change) != KernelPart::eps_place || change.kernel->id == "eps-on-both") continue;
      for (const Change& value : changes_) {
        if (!value.found && part_of(value) == KernelPart::eps_value) look({&change, &value});
      }
    }
  }

  const Sample& sample_;
  const KernelContext& context_;
  const JudgeSetting& setting_;
  const ChooseKernel& choose_;
  const Variant asked_;
  const std::shared_ptr<const std::vector<NamedKernel>> kernels_;
  std::vector<ToldRow> rows_;  // that are not lost
  bool are_all_lost_ = true;
  bool are_constant_ = false;
  std::deque<NamedKernel> found_;
  std::deque<Change> changes_;
  std::vector<Candidate> candidates_;
  std::vector<Proof> proofs_;
  mutable std::size_t refuting_ = 0;  // the row that refuted the last formula
  mutable VariantRow row_;            // a buffer: rows may be long
  mutable VariantRow activated_;      // the first row by the formula asked for, where it was needed
  mutable double usual_n_ = 0;        // what usual_loss was asked for last
  mutable double usual_loss_ = 0;
  FormulaSums exact_;           // of the formula asked for
  std::size_t right_rows_ = 0;  // that it explains
  bool has_few_rows_ = false;
};

}  // namespace

double FormulaSums::share() const {
  return elements == 0 ? 0 : static_cast<double>(explained) / static_cast<double>(elements);
}

double FormulaSums::sqnr() const { return 10 * std::log10(signal / errors); }

double FormulaSums::mean_square() const {
  return elements == 0 ? kInfinity : errors / static_cast<double>(elements);
}

const FormulaFit* Diagnosis::most_like() const {
  const auto best = std::ranges::max_element(explanations, {}, &FormulaFit::explained);
  const bool is_near = best != explanations.end() && best->explained >= 0.9 &&
                       best->explained >= share_of_exact + 0.1;
  return is_near ? &*best : nullptr;
}

void FormulaSums::add(const FormulaSums& other) {
  elements += other.elements;
  explained += other.explained;
  certain += other.certain;
  lost += other.lost;
  lost_numbers += other.lost_numbers;
  signal += other.signal;
  errors += other.errors;
  excess += other.excess;
}

void add_fit(const Variant& variant, const Sample& sample, const SampleRow& row, VariantRow& result,
             FormulaSums& sums, bool all_or_nothing) {
  if (!evaluate(variant, sample, row, result)) return;
  add_results(result, sample.setting->output, sums, all_or_nothing);
}

LNORM_FOR_PROCESSORS
void add_results(const VariantRow& result, const OutputFormat& output, FormulaSums& sums,
                 bool all_or_nothing) {
  if (!all_or_nothing && result.kept.empty() && result.is_bounded && !result.is_reread()) {
    // The loop below, in vectors, where all numbers are finite.
    const std::size_t n = result.y.size();
    const auto [explained, signal, errors, excess, not_finite] =
        totals<5>(n, [&](std::size_t i) -> std::array<double, 5> {
          const double y = result.y[i];
          const double error = std::fabs(result.actual[i] - y);
          const double beyond = error - output.half_ulp(y);
          const double part = beyond > 0 ? beyond : 0;
          const double explains = error <= result.bound[i] ? 1 : 0;
          return {explains, y * y, error * error, part * part, (error - error) * result.bound[i]};
        });
    if (not_finite == 0) {
      const auto count = static_cast<std::int64_t>(explained);
      sums.add({.elements = static_cast<std::int64_t>(n),
                .explained = count,
                .certain = count,
                .signal = signal,
                .errors = errors,
                .excess = excess});
      return;
    }
  }
  for (std::size_t i = 0; i < result.y.size(); ++i) {
    if (!result.kept.empty() && result.kept[i] == 0) continue;
    ++sums.elements;
    const bool explains = is_explained(result, i, output);
    sums.explained += static_cast<std::int64_t>(explains);
    sums.lost_numbers += static_cast<std::int64_t>(!explains && !std::isfinite(result.actual[i]));
    // Bytes in another order are nearly 0 as a rule, which is within the bound of 0.
    const bool is_certain = std::isfinite(result.bound[i]) &&
                            (!result.is_reread() || std::fabs(result.y[i]) > result.bound[i]);
    sums.certain += static_cast<std::int64_t>(explains && is_certain);
    sums.lost += static_cast<std::int64_t>(explains && std::isnan(result.y[i]));
    if (all_or_nothing && !explains) return;
    const double error = std::fabs(result.actual[i] - result.y[i]);
    if (!std::isfinite(error) || std::isinf(result.bound[i])) continue;
    sums.signal += result.y[i] * result.y[i];
    sums.errors += error * error;
    const double excess = error - output.half_ulp(result.y[i]);
    if (excess > 0) sums.excess += excess * excess;
  }
}

bool needs_more_than_row(const Variant& variant) {
  return variant.input != Variant::Input::sum || variant.adds_residual;
}

std::size_t parts_of(const std::vector<const NamedKernel*>& kernels) {
  std::size_t parts = 0;
  for (const NamedKernel* const kernel : kernels) parts += kernel->row == nullptr ? 2 : 1;
  return parts;
}

FormulaFit cause(std::string id, std::string words, double sqnr, std::vector<std::string> options) {
  return {.ids = {std::move(id)},
          .words = std::move(words),
          .options = std::move(options),
          .explained = 1,
          .sqnr = sqnr,
          .explains_all = true};
}

FormulaFit described(const Proof& proof, const KernelContext& context) {
  FormulaFit result{.explained = proof.sums.share(),
                    .sqnr = proof.sums.sqnr(),
                    .explains_all = proof.explains,
                    .variant = proof.variant};
  result.words =
      joined(proof.kernels, "; ", [](const NamedKernel* kernel) { return kernel->words; });
  for (const NamedKernel* const kernel : proof.kernels) {
    result.ids.push_back(kernel->id);
    result.options.push_back(option_of(*kernel, context));
  }
  // "without" reads as being said of all that follow it, so it comes last.
  std::stable_partition(result.options.begin(), result.options.end(),
                        [](const std::string& option) { return !option.starts_with("without"); });
  // Part of the options gives something else.
  if (std::ranges::count(result.options, "") > 0) result.options.clear();
  return result;
}

std::vector<FormulaFit> ranked(
    std::vector<Proof>& proofs, const KernelContext& context,
    const std::function<bool(const Proof& left, const Proof& right)>& are_alike) {
  std::ranges::stable_sort(proofs, {}, [](const Proof& proof) {
    return std::tuple(!proof.explains, proof.is_far, parts_of(proof.kernels), proof.score,
                      proof.sums.mean_square());
  });
  const auto is_listed = [](const Proof& proof) {
    return std::ranges::all_of(proof.kernels, [](const auto* one) { return one->row != nullptr; });
  };
  // A listed formula is like a listed one, a told number like a told one: one row tells eps, a divisor and a factor alike.
  const auto is_like = [&](const Proof& proof, const Proof& best) {
    return proof.explains && best.explains && proof.is_far == best.is_far &&
           is_listed(proof) == is_listed(best) &&
           parts_of(proof.kernels) == parts_of(best.kernels) && are_alike(best, proof);
  };
  // Of those that the rows hardly tell apart the likelier one, which is first in the table. A formula without statistics has a score of
  // its parts alone, which says nothing of how near it is.
  constexpr double kHardly = 9;
  if (!proofs.empty()) {
    const Proof& first = proofs.front();
    const bool has_score = first.score != parts_score(first.kernels);
    const auto end =
        std::stable_partition(proofs.begin() + 1, proofs.end(), [&](const Proof& proof) {
          return (!has_score || proof.score <= first.score + kHardly) && is_like(proof, first);
        });
    // What is nearer by half is told: the output of eps 0 is not that of 1e-6, though rounding would explain it.
    double least = kInfinity;
    for (const Proof& proof : std::span(proofs.begin(), end)) {
      least = std::min(least, proof.sums.mean_square());
    }
    std::ranges::stable_sort(proofs.begin(), end, {}, [&](const Proof& proof) {
      std::vector<std::tuple<const WrongKernel*, double, std::string, Side>> places;
      for (const NamedKernel* const one : proof.kernels) {
        places.emplace_back(one->row, one->parameter, one->id, one->side);
      }
      return std::pair(proof.sums.mean_square() > 4 * least, places);
    });
  }
  std::vector<FormulaFit> result;
  std::set<std::string> seen;
  for (const Proof& proof : proofs) {
    FormulaFit next = described(proof, context);
    if (!seen.insert(next.id()).second) continue;
    if (!result.empty() && is_like(proof, proofs.front())) {
      result.front().same_as.push_back(next.id());
    } else if (result.size() < kMaxExplanations) {
      result.push_back(std::move(next));
    }
  }
  return result;
}

bool are_alike(const RowBounds& left, const RowBounds& right) {
  std::size_t told = 0;  // where a bound allows anything nothing is
  for (std::size_t i = 0; i < left.y.size(); ++i) {
    const double a = left.y[i];
    const double b = right.y[i];
    const double bound = left.bound[i] + right.bound[i];
    const bool is_same = a == b || (std::isnan(a) && std::isnan(b));
    if (!is_same && !(std::fabs(a - b) <= bound)) return false;
    told += std::isfinite(bound) ? 1 : 0;
  }
  return 2 * told >= left.y.size();
}

Diagnosis diagnose(const Sample& sample, const KernelContext& context, const ChooseKernel& choose,
                   bool differs) {
  return Search(sample, context, choose).run(differs);
}

}  // namespace lnorm
