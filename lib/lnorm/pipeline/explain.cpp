#include "lnorm/pipeline/explain.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "lnorm/kernel/exact_row.hpp"
#include "lnorm/kernel/moments.hpp"
#include "lnorm/kernel/row_normalizer.hpp"
#include "lnorm/kernel/softmax_row.hpp"
#include "lnorm/layout/spooled_tensor.hpp"

namespace lnorm {

namespace {

constexpr std::int64_t kMaxElements = 20;  // of a longer row not all are shown
constexpr std::int64_t kAtEnds = 5;

// How often a row is read, roughly: for the progress.
constexpr std::int64_t kTable = 9;

// A row that can be read again: held, or read in parts.
class RepeatedRow {
 public:
  RepeatedRow(TensorSource& source, const Plan& plan, const Progress& progress)
      : source_(&source), length_(plan.row_length), part_(plan.route.count), progress_(progress) {
    if (plan.route.in_parts) {
      if (source.has_random_access()) return;
      spooled_ = spooled(source);
      source_ = spooled_.get();
    } else {
      held_ = read_all(source);
    }
  }

  void finish() {
    if (!held_ && !spooled_) source_->finish();
  }

  // Elements first to first + count. buffer: where they may be held.
  RowsIn part(std::int64_t first, std::int64_t count, std::vector<std::byte>& buffer) const {
    const TensorInfo& info = source_->info();
    const auto item = static_cast<std::int64_t>(item_size(info.dtype));
    if (held_) return {held_->data() + first * item, info.dtype, info.byte_order, 1, count};
    buffer.resize(static_cast<std::size_t>(count * item));
    source_->read_at(first * item, buffer);
    return {buffer.data(), info.dtype, info.byte_order, 1, count};
  }

  // Calls see(part, where it begins) for one part after another.
  template <class See>
  void for_each_part(See see) const {
    std::vector<std::byte> buffer;
    const std::int64_t step = held_ ? length_ : part_;
    for (std::int64_t first = 0; first < length_; first += step) {
      const std::int64_t count = std::min(step, length_ - first);
      see(part(first, count, buffer), first);
      done_ += count;
      if (progress_) progress_(std::min(length_ - 1, done_ / kTable));
    }
  }

  ReadRow reader() const {
    return [this](const auto& see) {
      for_each_part([&](const RowsIn& part, std::int64_t) { see(part); });
    };
  }

 private:
  TensorSource* source_;
  std::unique_ptr<TensorSource> spooled_;
  std::optional<std::vector<std::byte>> held_;
  std::int64_t length_;
  std::int64_t part_;
  const Progress& progress_;
  mutable std::int64_t done_ = 0;
};

// Writes what becomes of a part, which begins at an element of the row.
using WritePart = std::function<void(const RowsIn& part, std::int64_t first, const RowsOut& y)>;

class Explainer {
 public:
  Explainer(const RepeatedRow& row, const Plan& plan, const Backend& backend, const Affine& affine,
            const GivenStatistics* given)
      : row_(row),
        plan_(plan),
        backend_(backend),
        given_(given),
        y_(y_by(plan.formula, affine)),
        other_y_(
            y_by(with_eps_on(plan.formula.eps_on == EpsOn::variance ? EpsOn::std : EpsOn::variance),
                 affine)) {
    const Number max = largest_element(row.reader());
    if (std::isfinite(max.high)) softmax_.emplace(row.reader(), plan.row_length, max);
  }

  ExplainedRow explain(const AffineTerm& weight, const AffineTerm& bias, bool rounds_xhat) const {
    const std::int64_t n = plan_.row_length;
    ExplainedRow result = empty_row(plan_);
    result.input = measure_moments(row_.reader(), plan_.in, n, plan_.formula.ddof, backend_);
    if (result.input.non_finite > 0) result.non_finite = non_finite_elements();
    result.output = moments_of(y_);
    result.softmax = moments_of(softmax());
    const SummedRow sums(row_.reader(), n);
    std::optional<ExactRow> exact;
    if (sums.is_finite()) {
      exact.emplace(sums.by(plan_.formula));
      explain_statistics(sums, *exact, result);
    }
    if (given_ != nullptr) explain_given(result);
    if (given_ == nullptr ? exact.has_value() : !given_->variance.empty()) compare_places(result);
    const bool shows_all = n <= kMaxElements;
    std::vector<std::byte> buffer;
    for (std::int64_t i = 0; i < n; ++i) {
      if (!shows_all && i == kAtEnds) i = n - kAtEnds;
      const RowsIn part = row_.part(i, 1, buffer);
      ExplainedElement element{.number = i, .x = element_of(part, 0)};
      if (given_ != nullptr) {
        explain_by_given(*result.given, part, rounds_xhat, element);
      } else if (exact) {
        explain_element(*exact, rounds_xhat, element);
      }
      const std::int64_t number = plan_.affine.number(plan_.affine.first(0), i);
      element.weight = weight.number_or(1, number);
      element.bias = bias.number_or(0, number);
      element.y = single(y_, part, i);
      element.softmax = single(softmax(), part, i);
      result.elements.push_back(element);
    }
    return result;
  }

  static ExplainedRow empty_row(const Plan& plan) {
    constexpr Moments kNone{
        .mean = kUndefined, .variance = kUndefined, .min = kUndefined, .max = kUndefined};
    ExplainedRow row;
    row.dtype = plan.in;
    row.length = plan.row_length;
    row.input = row.output = row.softmax = kNone;
    return row;
  }

 private:
  std::vector<std::int64_t> non_finite_elements() const {
    constexpr std::size_t kMost = 10;
    std::vector<std::int64_t> found;
    std::int64_t before = 0;
    row_.reader()([&](const RowsIn& part) {
      for_each_element(part, [&](std::int64_t i, Number x) {
        if (!std::isfinite(x.high) && found.size() < kMost) found.push_back(before + i);
      });
      before += part.row_length;
    });
    return found;
  }

  WritePart y_by(const Formula& formula, const Affine& affine) const {
    if (given_ != nullptr) {
      return [this, &affine, formula](const RowsIn& part, std::int64_t first, const RowsOut& y) {
        normalize_by(backend_, *given_, part, y, affine, formula, first);
      };
    }
    std::vector<std::byte> buffer;
    const RowSetting setting =
        RowSetting{backend_, plan_.in, plan_.out, plan_.row_length, affine, formula, false, true}
            .of_row(0);
    const RowsIn first = row_.part(0, std::min(plan_.row_length, kChunk), buffer);
    auto result = std::make_shared<RowNormalizer>(setting, sample_of(first), row_.reader());
    result->sum_up();
    return [result](const RowsIn& part, std::int64_t offset, const RowsOut& y) {
      result->write(part, offset, y);
    };
  }

  Formula with_eps_on(EpsOn place) const {
    Formula formula = plan_.formula;
    formula.eps_on = place;
    return formula;
  }

  WritePart softmax() const {
    return [this](const RowsIn& part, std::int64_t, const RowsOut& out) {
      for_each_element(part, [&](std::int64_t i, Number x) {
        const double result = softmax_ ? softmax_->result(x, plan_.out) : kUndefined;
        store(&result, 1, out, i);
      });
    };
  }

  // A part of it as rows are read. buffer holds it.
  RowsIn written(const WritePart& write, const RowsIn& part, std::int64_t first,
                 std::vector<std::byte>& buffer) const {
    buffer.resize(static_cast<std::size_t>(part.row_length) * item_size(plan_.out));
    write(part, first, {.data = buffer.data(), .dtype = plan_.out});
    return {buffer.data(), plan_.out, std::endian::native, 1, part.row_length};
  }

  Moments moments_of(const WritePart& write) const {
    const auto read = [&](const auto& see) {
      std::vector<std::byte> buffer;
      row_.for_each_part([&](const RowsIn& part, std::int64_t first) {
        see(written(write, part, first, buffer));
      });
    };
    return measure_moments(read, plan_.out, plan_.row_length, plan_.formula.ddof, backend_);
  }

  double single(const WritePart& write, const RowsIn& element, std::int64_t number) const {
    std::vector<std::byte> buffer;
    return element_of(written(write, element, number, buffer), 0).high;
  }

  void explain_statistics(const SummedRow& sums, const ExactRow& exact, ExplainedRow& row) const {
    const std::int64_t n = plan_.row_length;
    const auto variance = [&](std::int64_t ddof) {
      Formula formula = plan_.formula;
      formula.ddof = ddof;
      return ddof < n ? sums.by(formula).variance() : kUndefined;
    };
    Formula without_eps = plan_.formula;
    without_eps.eps = 0;
    row.squares = exact.squares();
    row.biased = variance(0);
    row.unbiased = variance(1);
    row.variance = exact.variance();
    for (std::size_t k = 0; k < row.divisors.size(); ++k) {
      row.divisors[k] = sums.by(with_eps_on(static_cast<EpsOn>(k))).divisor();
    }
    row.divisor_without_eps = sums.by(without_eps).divisor();
    if (exact.is_defined()) row.mean_square = exact.mean_square();
  }

  void compare_places(ExplainedRow& row) const {
    std::vector<std::byte> buffers[2];
    std::vector<std::byte> other;
    row_.for_each_part([&](const RowsIn& part, std::int64_t first) {
      const RowsIn a = written(y_, part, first, buffers[0]);
      const RowsIn b = written(other_y_, part, first, buffers[1]);
      for_each_element(a, [&](std::int64_t i, Number y) {
        const double difference = std::fabs(y.high - element_of(b, i).high);
        if (std::isnan(difference) || difference <= row.eps_difference) return;
        row.eps_difference = difference;
        row.eps_difference_at = first + i;
      });
    });
  }

  // What the statistics that are given make of the row's own.
  void explain_given(ExplainedRow& row) const {
    const SavedStatistics given = given_->of(0);
    row.given = {given.mean.high};
    row.mean_square = kUndefined;
    row.divisors = kUndefinedDivisors;
    row.divisor_without_eps = kUndefined;
    row.variance = given.variance ? given.variance->high : kUndefined;
    if (!given.variance) row.given->rstd = given.rstd.high;
    if (!std::isfinite(row.variance)) return;
    const auto divisor = [&](const Formula& formula) {
      return ExactRow({.variance = given.variance}, formula).divisor();
    };
    Formula without_eps = plan_.formula;
    without_eps.eps = 0;
    for (std::size_t k = 0; k < row.divisors.size(); ++k) {
      row.divisors[k] = divisor(with_eps_on(static_cast<EpsOn>(k)));
    }
    row.divisor_without_eps = divisor(without_eps);
  }

  void explain_by_given(const ExplainedGiven& given, const RowsIn& part, bool rounds_xhat,
                        ExplainedElement& element) const {
    const bool is_finite = std::isfinite(element.x.high) && std::isfinite(given.mean);
    if (is_finite) {
      const ExactRow row({.mean = {given.mean}}, plan_.formula);
      element.deviation = row.deviation(element.x);
      element.square = row.squared_deviation(element.x);
    } else {
      element.deviation = element.x.high - given.mean;
      element.square = element.deviation * element.deviation;
    }
    std::vector<std::byte> buffer(sizeof(double));
    const RowsOut xhat{.data = buffer.data(), .dtype = rounds_xhat ? plan_.out : DType::float64};
    normalize_by(backend_, *given_, part, xhat, {}, plan_.formula, element.number);
    element.xhat = element_of({buffer.data(), xhat.dtype, std::endian::native, 1, 1}, 0).high;
  }

  void explain_element(const ExactRow& exact, bool rounds_xhat, ExplainedElement& element) const {
    element.deviation = exact.deviation(element.x);
    element.square = exact.squared_deviation(element.x);
    const DType dtype = rounds_xhat ? plan_.out : DType::float64;
    if (exact.is_defined()) element.xhat = exact.element(element.x, {}, dtype);
  }

  const RepeatedRow& row_;
  const Plan& plan_;
  const Backend& backend_;
  const GivenStatistics* given_;  // null: statistics are computed
  WritePart y_;
  WritePart other_y_;
  std::optional<SoftmaxRow> softmax_;  // none where all of it is NaN
};

}  // namespace

ExplainedRow explain(TensorSource& source, const Plan& plan, const Backend& backend,
                     const AffineTerm& weight, const AffineTerm& bias, const Affine& affine,
                     const GivenStatistics* given, bool rounds_xhat, const Progress& progress) {
  RepeatedRow row(source, plan, progress);
  ExplainedRow result =
      plan.row_length == 0
          ? Explainer::empty_row(plan)
          : Explainer(row, plan, backend, affine, given).explain(weight, bias, rounds_xhat);
  row.finish();
  return result;
}

}  // namespace lnorm
