#include "lnorm/pipeline/other_axes.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <string>

#include "lnorm/core/axes.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/pipeline/check_rows.hpp"

namespace lnorm {

namespace {

constexpr std::int64_t kMaxRowLength = std::int64_t{1} << 22;
constexpr std::int64_t kMaxMeasured =
    65536;                              // elements of a row whose sums are run in several orders
constexpr std::size_t kRows = 8;        // of the sample
constexpr std::int64_t kElements = 64;  // of each of them

// The number of the row along axes in which the element of a row of the plan lies.
std::int64_t row_number(const Plan& plan, const Axes& axes, std::int64_t row,
                        std::int64_t element) {
  const Shape index = index_of_element(plan.shape, plan.axes, row, element);
  std::int64_t number = 0;
  for (const std::size_t axis : kept_axes(plan.shape, axes)) {
    number = number * plan.shape[axis] + index[axis];
  }
  return number;
}

// The formula along other axes, for one element after another.
class AlongAxes {
 public:
  AlongAxes(TensorSource& x, const Plan& plan, const Axes& axes, const Formula& formula,
            const Sample& sample, int threads)
      : plan_(plan), axes_(axes), formula_(formula), sample_(sample), rows_(x, axes, threads) {}

  // Of the elements that are looked at. Nothing where one of them is not explained, or where the formula asked for is
  // nearly as near: a bound of millions of additions covers too much to explain anything by itself.
  std::optional<FormulaSums> fit() {
    FormulaSums sums;
    double excess_of_exact = 0;
    for (std::size_t r = 0; r < std::min(kRows, sample_.rows.size()); ++r) {
      const SampleRow& row = sample_.rows[r];
      const auto n = std::ssize(row.x);
      const std::int64_t step = std::max<std::int64_t>(1, n / kElements);
      for (std::int64_t i = 0; i < n; i += step) {
        if (!add(row, i, sums)) return {};
        const auto at = static_cast<std::size_t>(i);
        excess_of_exact += squared_excess(row.actual[at], row.exact[at]);
      }
    }
    if (!sums.explains_all() || sums.excess > excess_of_exact / 4) return {};
    return sums;
  }

 private:
  // False where the element is not explained.
  bool add(const SampleRow& row, std::int64_t i, FormulaSums& sums) {
    const JudgeSetting& setting = *sample_.setting;
    const auto at = static_cast<std::size_t>(i);
    double y = 0;
    double error = 0;
    fill_line(line_of_row(row_number(plan_, axes_, row.number, i)), &row.x[at], &setting.weight[at],
              &setting.bias[at], 1, &y, &error);
    const double off = std::fabs(row.actual[at] - y);
    if (!(off <= error + setting.output.half_ulp(std::fabs(y) + error))) return false;
    ++sums.elements;
    ++sums.explained;
    sums.signal += y * y;
    sums.errors += off * off;
    sums.excess += squared_excess(row.actual[at], y);
    return true;
  }

  // Of what is beyond half an ulp.
  double squared_excess(double actual, double y) const {
    const double excess = std::fabs(actual - y) - sample_.setting->output.half_ulp(y);
    return excess > 0 ? excess * excess : 0;
  }

  const RowLine& line_of_row(std::int64_t number) {
    const auto found = lines_.find(number);
    if (found != lines_.end()) return found->second;
    const JudgeSetting& setting = *sample_.setting;
    std::vector<double> numbers;
    const auto x = decode(setting.backend, rows_.read(number, 1, buffer_), numbers);
    const RowStatistics statistics = statistics_of(x, formula_);
    const MeasuredRow row{x, statistics};
    const bool is_measured = std::ssize(x) <= kMaxMeasured && !setting.kernel.depth;
    const SumLosses losses =
        is_measured ? losses_of({&row, 1}, formula_, setting.kernel.arithmetic, {}).front()
                    : SumLosses{};
    const StatisticErrors errors = errors_of(statistics, formula_, setting.kernel, losses);
    const double s = divisor_of(statistics.variance, formula_);
    return lines_.emplace(number, line_of(statistics, s, errors, setting.kernel)).first->second;
  }

  const Plan& plan_;
  const Axes& axes_;
  const Formula& formula_;
  const Sample& sample_;
  CheckRows rows_;
  TileBuffer buffer_;
  std::map<std::int64_t, RowLine> lines_;
};

}  // namespace

std::vector<OtherAxes> other_axes(const Shape& shape, const Axes& given) {
  std::vector<Axes> found;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) found.push_back({axis});
  for (std::size_t first = 0; first + 1 < shape.size(); ++first) {
    Axes axes(shape.size() - first);
    std::iota(axes.begin(), axes.end(), first);
    found.push_back(std::move(axes));
  }
  std::erase(found, given);
  std::vector<OtherAxes> result;
  for (Axes& axes : found) {
    const auto list = [&](std::string_view between) {
      return joined(axes, between, [](std::size_t axis) { return std::to_string(axis); });
    };
    result.push_back({"axes-" + list("-"), axes_option(list(",")), axes});
  }
  return result;
}

std::optional<FormulaFit> explain_by_axes(TensorSource& x, const Plan& plan, const Sample& sample,
                                          const ChooseKernel& choose, int threads) {
  const auto unbiased = std::ranges::find(wrong_kernels(), "ddof-1", &WrongKernel::id);
  for (const OtherAxes& other : other_axes(plan.shape, plan.axes)) {
    const std::int64_t length = element_count(extents(plan.shape, other.axes));
    if (!choose(other.id) || length > kMaxRowLength) continue;
    for (const bool is_unbiased : {false, true}) {
      Formula formula = plan.formula;
      if (is_unbiased) formula.ddof = 1;
      const bool is_other_ddof = is_unbiased && plan.formula.ddof != 1;
      if (formula.ddof >= length || (is_unbiased && !(is_other_ddof && choose(unbiased->id))))
        continue;
      const auto sums = AlongAxes(x, plan, other.axes, formula, sample, threads).fit();
      if (!sums) continue;
      FormulaFit fit{.id = other.id,
                     .words = std::string(kAxesWords),
                     .options = {other.option},
                     .explained = 1,
                     .sqnr = sums->sqnr(),
                     .explains_all = true};
      if (is_unbiased) {
        fit.id += concat('+', unbiased->id);
        fit.words += concat("; ", unbiased->words);
        fit.options.emplace_back(unbiased->options);
      }
      return fit;
    }
  }
  return {};
}

}  // namespace lnorm
