#include <algorithm>
#include <cmath>
#include <deque>
#include <functional>
#include <set>
#include <utility>

#include "lnorm/core/non_finite.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/diagnosis/diagnosis.hpp"
#include "lnorm/diagnosis/gradient_variant.hpp"

namespace lnorm {

namespace {

// A few unknowns by weighted least squares.
class NormalEquations {
 public:
  explicit NormalEquations(std::size_t unknowns)
      : products_(unknowns, std::vector<double>(unknowns + 1)) {}

  // One equation: the terms times the unknowns are right, within an error.
  void add(const std::vector<double>& terms, double right, double error) {
    for (std::size_t i = 0; i < terms.size(); ++i) {
      const double weighted = terms[i] / error / error;
      for (std::size_t k = 0; k < terms.size(); ++k) products_[i][k] += weighted * terms[k];
      products_[i].back() += weighted * right;
    }
  }

  // The standard error of the one unknown. Where an error may be anywhere within its bound, its mean square is a third of the bound's.
  double error() const { return 1 / std::sqrt(3 * products_[0][0]); }
  bool is_unknown() const { return products_[0][0] == 0; }

  // An unknown without terms is 1. Empty where they cannot be told apart.
  std::vector<double> solution() const {
    std::vector<std::vector<double>> rows = products_;
    std::vector<double> result(rows.size(), 1);
    std::vector<double> size;
    for (std::size_t i = 0; i < rows.size(); ++i) size.push_back(rows[i][i]);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (size[i] == 0) continue;
      if (!(rows[i][i] > 1e-9 * size[i])) return {};
      for (std::size_t k = 0; k < rows.size(); ++k) {
        if (k == i || size[k] == 0) continue;
        const double part = rows[k][i] / rows[i][i];
        for (std::size_t c = 0; c < rows[k].size(); ++c) rows[k][c] -= part * rows[i][c];
      }
    }
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (size[i] != 0) result[i] = rows[i].back() / rows[i][i];
    }
    return result;
  }

 private:
  std::vector<std::vector<double>> products_;
};

struct Trial : Proof {
  double first_errors = kInfinity;  // the mean square in the first row
};

// A wrong part brings results nearer that leaves so much of the mean square of the errors.
constexpr double kNearer = 0.75;

class GradientSearch {
 public:
  GradientSearch(const GradientSample& sample, const KernelContext& context,
                 const ChooseKernel& choose)
      : sample_(sample),
        context_(context),
        choose_(choose),
        asked_(asked_for(context.setting)),
        kernels_(choose.kernels(context.of, context.setting.normalized_shape)) {
    for (const std::vector<double>& row : sample_.actual) numbers_ += row.size();
    std::vector<Trial> exact{{{{}, asked_}}};
    evaluate(exact, true);
    exact_ = std::move(exact.front());
    result_.share_of_exact = exact_.sums.share();
  }

  Diagnosis run() {
    for (const bool is_coarse : {false, true}) {
      for (const std::size_t count : {1U, 2U}) {
        if (count > 1 && has_few_bits()) continue;
        std::vector<Trial> trials;
        add_trials(count, is_coarse, trials);
        if (trials.empty()) continue;
        evaluate(trials, false);
        for (const Trial& trial : trials) {
          const bool is_nearer = trial.first_errors <= kNearer * exact_.first_errors;
          if (count == 1 && is_nearer) nearer_.insert(trial.kernels.front());
        }
        take(std::move(trials));
        if (result_.explains_all()) return std::move(result_);
        if (is_coarse || count > 1) continue;
        if (context_.of == Quantity::dx) try_coefficients();
        if (!result_.explains_all()) try_factor();
        if (result_.explains_all()) return std::move(result_);
      }
    }
    return std::move(result_);
  }

 private:
  // Some of thousands of pairs explain so few bits by chance, and so does a factor.
  bool has_few_bits() const {
    constexpr std::size_t kFew = 64;
    return numbers_ * static_cast<std::size_t>(context_.setting.output.precision()) < kFew;
  }

  // Of two wrong parts one alone brings the results nearer: half of the mean square of the errors is the other's. Narrow sums are as
  // far off in every direction.
  void add_trials(std::size_t count, bool is_coarse, std::vector<Trial>& trials) const {
    const auto may_be_in_pair = [&](const NamedKernel* kernel) {
      return kernel->row->part == KernelPart::sums || nearer_.contains(kernel);
    };
    const auto add = [&](std::vector<const NamedKernel*> kernels) {
      const bool is_pair = kernels.size() > 1;
      Trial trial{{std::move(kernels), asked_}};
      for (const NamedKernel* const kernel : trial.kernels) {
        if (!kernel->row->change(trial.variant, context_, kernel->parameter)) return;
      }
      // Beside another wrong part noise may be anything.
      const Backward& v = trial.variant.backward;
      const bool is_alike = trial.variant.statistics_in == v.sums;
      if (v.is_noise() && is_pair && !is_alike) return;
      // In a few numbers the error of narrow sums covers the other part.
      constexpr std::size_t kFewNumbers = 16;
      if (v.sums && is_pair && numbers_ < kFewNumbers) return;
      if (v.sums && !may_be_sums_in(*v.sums)) return;
      if (v.is_noise() == is_coarse) trials.push_back(std::move(trial));
    };
    for (const NamedKernel& first : *kernels_) {
      if (count == 1) add({&first});
      for (const NamedKernel& second : *kernels_) {
        const bool is_pair = count == 2 && second.row->part > first.row->part;
        if (is_pair && (may_be_in_pair(&first) || may_be_in_pair(&second))) add({&first, &second});
      }
    }
  }

  // Sums in a narrow dtype are numbers of that dtype.
  bool may_be_sums_in(DType dtype) const {
    const OutputFormat narrow(dtype);
    const auto is_narrow = [&](double one) {
      return !std::isfinite(one) || narrow.rounded(one) == one;
    };
    return context_.is_uniform || std::ranges::all_of(sample_.actual, [&](const auto& row) {
             return std::ranges::all_of(row, is_narrow);
           });
  }

  // The coefficients of g, mean(g) and xhat mean(g xhat) that dx tells.
  void try_coefficients() {
    std::vector<Trial> terms;
    for (std::size_t k = 0; k < 3; ++k) {
      Trial& term = terms.emplace_back(Trial{{{}, asked_}});
      term.variant.backward.of_g = k == 0 ? 1 : 0;
      term.variant.backward.of_mean = k == 1 ? 1 : 0;
      term.variant.backward.of_variance = k == 2 ? 1 : 0;
    }
    evaluate(terms, true);
    std::vector<const std::vector<RowBounds>*> rows;
    rows.reserve(terms.size());
    for (const Trial& term : terms) rows.push_back(&term.rows);
    std::vector<double> found = equations(rows).solution();
    if (found.empty()) return;
    if (!context_.setting.formula.has_mean()) found[1] = found[0];
    const auto n = static_cast<double>(context_.row_length());
    std::vector<double> snapped;
    std::vector<std::string> text;
    for (const double number : found) {
      const bool is_length = n > 4 && std::fabs(number / n - 1) < 0.01;
      snapped.push_back(is_length ? n : std::round(number));
      text.push_back(is_length ? "n" : concat(static_cast<std::int64_t>(snapped.back())));
      if (!(std::fabs(snapped.back() - number) < 0.05) && !is_length) return;
    }
    const auto minus = [](const std::string& number) {
      return number[0] == '-' ? concat(" + ", number.substr(1)) : concat(" - ", number);
    };
    // All are the same: a factor.
    if (std::ranges::adjacent_find(snapped, std::not_equal_to<>()) == snapped.end()) return;
    Trial trial{{{}, asked_}};
    trial.variant.backward.of_g = snapped[0];
    trial.variant.backward.of_mean = snapped[1];
    trial.variant.backward.of_variance = snapped[2];
    try_found(std::move(trial),
              "dx-" + joined(text, "-", [](const std::string& one) { return one; }),
              concat("dx is (", text[0], " g", minus(text[1]), " mean(g)", minus(text[2]),
                     " xhat mean(g xhat)) / s"));
  }

  // The factor that all of the gradient has.
  void try_factor() {
    constexpr double kSums = 16;  // what sums lose, in u
    const double u = context_.setting.kernel.arithmetic.unit;
    const NormalEquations of_factor = equations({&exact_.rows});
    const std::vector<double> solution = of_factor.solution();
    if (solution.empty() || of_factor.is_unknown()) return;
    const double found = solution.front();
    const double error = 3 * of_factor.error() + kSums * u;
    const std::string of(name(context_.of));
    const auto is_cause = [&](double factor, const std::string& text) {
      if (factor == 1 || factor == 0 || !may_be_multiplied_by(factor)) return false;
      Trial trial{{{}, asked_}};
      trial.variant.backward.factor = factor;
      try_found(std::move(trial), of + (factor == -1 ? "-negated" : "-factor=" + text),
                concat(of, " is multiplied by ", text, numbers_in(text)));
      return result_.explains_all();
    };
    // Plain numbers go before the one that is told: errors of sums over rows go in one direction.
    constexpr double kNear = 1e-4;
    const auto n = static_cast<double>(context_.row_length());
    const auto rows = static_cast<double>(context_.rows);
    // Sums over rows are averaged over these. Where there are as many as elements of a row, that goes before.
    std::pair<double, std::string> first(n, "n");
    std::pair<double, std::string> second(rows, "R");
    if (context_.of != Quantity::dx) std::swap(first, second);
    const std::pair<double, std::string> plain[] = {{-1, "-1"},
                                                    {2, "2"},
                                                    {0.5, "0.5"},
                                                    {-2, "-2"},
                                                    first,
                                                    {1 / first.first, "1/" + first.second},
                                                    second,
                                                    {1 / second.first, "1/" + second.second},
                                                    {n * rows, "n R"},
                                                    {1 / n / rows, "1/(n R)"}};
    const auto is_small = [](double whole) { return whole > 2 && whole <= 4096; };
    std::vector<std::pair<double, std::string>> all(std::begin(plain), std::end(plain));
    const double size = std::fabs(found);
    // A scale of the loss.
    const double power = std::copysign(std::exp2(std::round(std::log2(size))), found);
    if (std::fabs(power) > 2) all.emplace_back(power, shortest_text(power, 0));
    for (const double whole : {std::round(size), std::round(1 / size)}) {
      if (!is_small(whole)) continue;
      const double number = std::copysign(size > 1 ? whole : 1 / whole, found);
      all.emplace_back(number, size > 1
                                   ? shortest_text(number, 0)
                                   : concat(found < 0 ? "-" : "", "1/", shortest_text(whole, 0)));
    }
    for (const auto& [factor, text] : all) {
      const bool is_near = std::fabs(found / factor - 1) < kNear + error / std::fabs(found);
      if (is_near && is_cause(factor, text)) return;
    }
    if (has_few_bits()) return;
    const std::string text = shortest_text(found, error);
    is_cause(std::stod(text), text);
  }

  // Whether nine of ten numbers may be the factor times the right ones, by wide bounds. If not, no pass over all rows is made for it.
  bool may_be_multiplied_by(double factor) const {
    std::size_t near = 0;
    for (std::size_t r = 0; r < exact_.rows.size(); ++r) {
      const RowBounds& exact = exact_.rows[r];
      for (std::size_t i = 0; i < exact.y.size(); ++i) {
        const double actual = sample_.actual[r][i];
        const double bound =
            4 * std::fabs(factor) * exact.bound[i] + 4 * context_.setting.output.half_ulp(actual);
        near += std::fabs(actual - factor * exact.y[i]) <= bound || !std::isfinite(actual) ||
                        !exact.is_bounded
                    ? 1
                    : 0;
      }
    }
    return 10 * near >= 9 * numbers_;
  }

  // What the letters in a factor stand for.
  std::string numbers_in(std::string_view factor) const {
    std::string words;
    if (factor.find('n') != factor.npos) words += concat(", n = ", context_.row_length());
    if (factor.find('R') != factor.npos) words += concat(", R = ", context_.rows);
    return words;
  }

  // Least squares over all elements that are looked at. terms: what the gradient is a sum of.
  NormalEquations equations(const std::vector<const std::vector<RowBounds>*>& terms) const {
    const OutputFormat& output = context_.setting.output;
    const double u = context_.setting.kernel.arithmetic.unit;
    NormalEquations equations(terms.size());
    for (std::size_t r = 0; r < sample_.actual.size(); ++r) {
      for (std::size_t i = 0; i < sample_.actual[r].size(); ++i) {
        const double actual = sample_.actual[r][i];
        std::vector<double> of;
        double size = 0;
        for (const std::vector<RowBounds>* const rows : terms) {
          of.push_back((*rows)[r].y[i]);
          size += std::fabs(of.back());
        }
        if (!std::isfinite(actual) || !std::isfinite(size)) continue;
        const double error = output.half_ulp(actual) + 4 * u * size;
        if (error > 0) equations.add(of, actual, error);
      }
    }
    return equations;
  }

  void try_found(Trial trial, std::string id, std::string words) {
    if (!choose_(id)) return;
    NamedKernel& kernel = found_.emplace_back();
    kernel.id = std::move(id);
    kernel.words = std::move(words);
    trial.kernels.push_back(&kernel);
    std::vector<Trial> trials{std::move(trial)};
    evaluate(trials, false);
    take(std::move(trials));
  }

  // Evaluates the trials on the rows. Unless all are wanted, a trial that explains too little of the first rows is given up, and only
  // those that explain all keep their rows.
  void evaluate(std::span<Trial> trials, bool wants_all) const {
    for (std::size_t first = 0; first < trials.size(); first += sample_.at_once) {
      std::vector<Trial*> some;
      for (Trial& trial : trials.subspan(first, std::min(sample_.at_once, trials.size() - first))) {
        some.push_back(&trial);
      }
      for (std::size_t r = 0; r < sample_.actual.size(); ++r) {
        std::vector<Variant> variants;
        variants.reserve(some.size());
        for (const Trial* const trial : some) variants.push_back(trial->variant);
        std::vector<RowBounds> found = sample_.evaluate(variants, r);
        for (std::size_t k = 0; k < some.size(); ++k) {
          add_results({found[k], sample_.actual[r]}, context_.setting.output, some[k]->sums);
          some[k]->rows.push_back(std::move(found[k]));
          if (r == 0) some[k]->first_errors = some[k]->sums.mean_square();
        }
        if (wants_all) continue;
        std::erase_if(some, [&](Trial* trial) {
          const bool is_given_up = trial->sums.share() < sample_.least_share;
          if (is_given_up) trial->sums = {};
          if (!trial->sums.explains_all()) trial->rows = {};
          return is_given_up;
        });
      }
    }
  }

  // Whether the results are off as sums in the narrow dtype are: by about as much as a rule, in both directions, toward 0 as often as
  // away, none far more than the others; and they are numbers of that dtype. Returns a score, the lower the nearer; nothing if they are not.
  std::optional<double> noise(const Trial& trial) const {
    constexpr double kFewest = 8;
    constexpr double kGreatest = 5;  // the greatest, in parts of the root of the mean square
    double count = 0;
    double above = 0;
    double away = 0;
    double toward_zero = 0;
    double squares = 0;
    double greatest = 0;
    const OutputFormat narrow(*trial.variant.backward.sums);
    for (std::size_t r = 0; r < trial.rows.size(); ++r) {
      const RowBounds& row = trial.rows[r];
      for (std::size_t i = 0; i < row.y.size(); ++i) {
        if (narrow.rounded(sample_.actual[r][i]) != sample_.actual[r][i]) return {};
        const double off = kNoise * (sample_.actual[r][i] - row.y[i]) / row.bound[i];
        if (!std::isfinite(off)) return {};
        count += 1;
        above += off > 0 ? 1 : 0;
        away += off * row.y[i] > 0 ? 1 : 0;
        toward_zero += off * row.y[i] < 0 ? 1 : 0;
        squares += off * off;
        greatest = std::max(greatest, std::fabs(off));
      }
    }
    const double size = std::sqrt(squares / count);
    const bool is_noise = count >= kFewest && size >= 1 / kNoiseTimes && size <= kNoiseTimes &&
                          greatest <= kGreatest * size &&
                          std::min(above, count - above) >= count / 8 &&
                          8 * std::min(away, toward_zero) >= away + toward_zero &&
                          std::fabs(away - toward_zero) <= 3 * std::sqrt(away + toward_zero);
    return is_noise ? std::optional(10 * std::fabs(std::log(size))) : std::nullopt;
  }

  // Those that explain all, and what may be nearest.
  void take(std::vector<Trial> trials) {
    for (Trial& trial : trials) {
      const FormulaSums& sums = trial.sums;
      // Without any error the ratio is infinite.
      const bool is_exact = sums.errors == 0;
      if (sums.elements == 0 || !(is_exact || sums.sqnr() > 0 || std::isfinite(sums.sqnr()))) {
        continue;
      }
      if (trial.variant.backward.is_noise()) {
        const auto found = sums.explains_all() ? noise(trial) : std::nullopt;
        trial.explains = found.has_value();
        trial.score = found.value_or(0);
      } else {
        // The bound of a formula may be so wide that it covers anything: 20 dB are asked for.
        constexpr double kLeastSqnr = 20;
        trial.explains = sums.explains_all() && sums.excess <= exact_.sums.excess / 4 &&
                         (is_exact || sums.sqnr() >= kLeastSqnr);
      }
      // A bound that is wide enough covers what is no such gradient as well.
      if ((sums.explains_all() || trial.variant.backward.sums) && !trial.explains) continue;
      proofs_.push_back(std::move(trial));
    }
    result_.explanations = ranked(proofs_, context_, [](const Proof& left, const Proof& right) {
      return std::ranges::equal(left.rows, right.rows,
                                [](const auto& a, const auto& b) { return are_alike(a, b); });
    });
  }

  const GradientSample& sample_;
  const KernelContext& context_;
  const ChooseKernel& choose_;
  const Variant asked_;
  Trial exact_;
  std::shared_ptr<const std::vector<NamedKernel>> kernels_;
  std::set<const NamedKernel*> nearer_;  // each by itself
  std::size_t numbers_ = 0;              // that are looked at
  std::deque<NamedKernel> found_;
  std::vector<Proof> proofs_;
  Diagnosis result_;
};

}  // namespace

Diagnosis diagnose(const GradientSample& sample, const KernelContext& context,
                   const ChooseKernel& choose) {
  return GradientSearch(sample, context, choose).run();
}

}  // namespace lnorm
