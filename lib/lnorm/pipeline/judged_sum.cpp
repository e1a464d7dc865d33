#include "lnorm/pipeline/judged_sum.hpp"

#include <any>
#include <cmath>
#include <vector>

#include "lnorm/kernel/rounding.hpp"
#include "lnorm/kernel/rows.hpp"
#include "lnorm/pipeline/check_rows.hpp"

namespace lnorm {

namespace {

class SumObserver final : public RowObserver {
 public:
  SumObserver(const JudgeSetting& setting, const CheckRows& actual)
      : setting_(setting), actual_(actual) {}

  BlockFindings examine(const RowBlock& block) const override {
    JudgedRows found;
    RowJudge judge(setting_, block.x.row_length);
    TileBuffer buffer;
    const RowsIn actual = actual_.read(block.first_row, block.x.rows, buffer);
    for (std::int64_t r = 0; r < block.x.rows; ++r) {
      const std::vector<double> sums = decoded(setting_.backend, row_of(block.x, r));
      const std::vector<double> of_kernel = decoded(setting_.backend, row_of(actual, r));
      std::vector<double> exact;
      exact.reserve(sums.size());
      for_each_element(row_of(block.x, r), [&](std::int64_t, Number sum) {
        exact.push_back(rounded(DoubleDouble{sum.high, sum.low}, setting_.output.dtype()));
      });
      if (of_kernel == exact) {
        RowJudge::count_exact(std::ssize(exact), found);
        continue;
      }
      judge.judge_and_settle_by(
          {block.first_row + r, sums, of_kernel, exact}, [&](bool) { return bounds(sums); }, found);
    }
    return found;
  }

  void see(const RowBlock&, const BlockFindings& findings) override {
    found_.merge(std::any_cast<const JudgedRows&>(findings));
  }

  const JudgedRows& found() const { return found_; }

 private:
  RowBounds bounds(const std::vector<double>& sums) const {
    RowBounds bounds{sums, {}, true, true};
    bounds.bound.reserve(sums.size());
    for (const double sum : sums) {
      const double rounding = setting_.kernel.arithmetic.unit * std::fabs(sum);
      bounds.bound.push_back(rounding + setting_.output.half_ulp(std::fabs(sum) + rounding));
    }
    return bounds;
  }

  const JudgeSetting& setting_;
  const CheckRows& actual_;
  JudgedRows found_;
};

}  // namespace

Check check_sum(TensorSource& sum, TensorSource& actual, const Plan& plan, const Backend& backend,
                const CheckOptions& options, const RunOptions& run_options) {
  const JudgeSetting setting =
      judge_setting(plan, backend, options, true, false, actual.info().dtype);
  const CheckRows rows(actual, plan.axes, run_options.threads);
  SumObserver observer(setting, rows);
  RowObserver* const observers[] = {&observer};
  LentSource x(sum);
  run(x, plan, {}, observers, nullptr, run_options);
  Check result = begin_check(sum.info(), actual.info(), plan, setting, options.arithmetic);
  result.part = "sum";
  result.judged = observer.found();
  result.verdict = verdict_of(result.judged);
  describe_places(result, plan.rows, row_shape(result.x.shape, result.axes));
  return result;
}

}  // namespace lnorm
