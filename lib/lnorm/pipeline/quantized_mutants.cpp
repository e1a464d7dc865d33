#include "lnorm/pipeline/quantized_mutants.hpp"

#include <algorithm>
#include <cmath>

#include "lnorm/pipeline/check_rows.hpp"
#include "lnorm/pipeline/shared_scales.hpp"

namespace lnorm {

MutantQuantizer::MutantQuantizer(const MutantInputs& inputs, const AskedQuantization& asked,
                                 const Plan& plan, const JudgeSetting& setting, int threads)
    : inputs_(inputs),
      asked_(asked),
      plan_(plan),
      setting_(setting),
      grid_(plan.out),
      group_(plan.row_length / std::max<std::int64_t>(1, plan.scales_of_row)) {
  const RowQuantizer computed = quantizer(nullptr);
  const RunOptions alone{.threads = threads};
  const AffineTerm* scales = asked_.given_scale;
  if (plan_.shared_scales > 0) {
    shared_ = lnorm::shared_scales(inputs_.x, plan_, computed, asked_.quantization, alone);
    scales = &(shared_term_ = AffineTerm(shared_, {}));
    for (std::int64_t r = 0; r < plan_.rows; ++r) {
      if (shared_scale(r) == first_rows_.size()) first_rows_.push_back(r);
    }
  }
  if (shared_.size() == 1) {
    scale_of_tensor_ = shared_.front();
  } else if (scales == nullptr || !shared_.empty()) {
    scale_of_tensor_ = scale_of_tensor(inputs_.x, plan_, computed, asked_.quantization, alone);
  }
  exact_.emplace(quantizer(scales));
}

QuantizedContext MutantQuantizer::context() const {
  return {.quantization = asked_.quantization,
          .rows = plan_.rows,
          .row_length = plan_.row_length,
          .shared_scales = plan_.shared_scales,
          .is_given = asked_.given_scale != nullptr,
          .is_written = true,
          .has_nan = asked_.given_scale == nullptr && std::isnan(scale_of_tensor_),
          .has_residual = inputs_.alone != nullptr,
          .has_weight = !inputs_.weight.empty(),
          .has_bias = !inputs_.bias.empty()};
}

RowQuantizer MutantQuantizer::quantizer(const AffineTerm* scales) const {
  return {setting_.backend,
          nullptr,
          inputs_.affine,
          plan_.formula,
          asked_.quantization,
          scales,
          plan_.shared_scales > 0 ? plan_.scales : plan_.affine};
}

RowOfKernel MutantQuantizer::steps_of(const SampleRow& row) const {
  return {setting_, affine_of(row, setting_), asked_.quantization, row.x, row.alone,
          {},       scale_of_tensor_};
}

std::vector<double> MutantQuantizer::given_scales(std::int64_t row) const {
  if (asked_.given_scale == nullptr) return {};
  return numbers_of(*asked_.given_scale, plan_.row_length, 1, plan_.affine, row);
}

WrittenRow MutantQuantizer::quantized(const QuantizedRule& rule, std::int64_t row,
                                      std::span<const double> given, double shared_amax) const {
  WrittenRow made{std::vector<double>(rule.y.size()), {}};
  const bool is_shared = !shared_.empty() && rule.group == 0;
  const std::int64_t step = rule.step(group_);
  for (std::int64_t first = 0; first < plan_.row_length; first += step) {
    const double amax =
        is_shared ? shared_amax : rule.largest(rule.part(rule.amax_of, first, group_));
    const double scale = rule.scale ? *rule.scale : rule.scale_of(amax, amax == 0);
    const bool is_saved =
        given.empty() && step == group_ && (shared_.empty() || (is_shared && has_first(row)));
    if (is_saved) made.scales.push_back(rule.saved(scale));
    for (std::int64_t i = first; i < first + step; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const double by = rule.has_no_scale ? 1 : given.empty() ? scale : given[at];
      made.q[at] = rule.result(grid_, rule.y[at], by);
    }
  }
  return made;
}

std::int64_t MutantQuantizer::scales_before(std::int64_t row) const {
  if (shared_.empty()) return row * plan_.scales_of_row;
  return std::ranges::lower_bound(first_rows_, row) - first_rows_.begin();
}

WrittenRow MutantQuantizer::exact_row(const RowBlock& block, std::int64_t r) const {
  WrittenRow row{decoded(setting_.backend, row_of(output_rows(block), r)), {}};
  if (!shared_.empty()) {
    const std::int64_t number = block.first_row + r;
    if (has_first(number)) row.scales = {shared_[shared_scale(number)]};
  } else if (!block.scale.empty()) {
    const auto count = static_cast<std::size_t>(plan_.scales_of_row);
    const auto its = block.scale.subspan(static_cast<std::size_t>(r) * count, count);
    row.scales.assign(its.begin(), its.end());
  }
  return row;
}

}  // namespace lnorm
