#include "lnorm/pipeline/exact_gradients.hpp"

#include <bit>
#include <span>

#include "lnorm/diagnosis/sum_losses.hpp"

namespace lnorm {

ExactGradients::ExactGradients(const GradSources& sources, const GradPlan& plan,
                               const Backend& backend, const AffineTerm& weight,
                               const AffineTerm& bias, DType dx, bool is_uniform, int threads)
    : plan_(plan),
      bias_(bias),
      is_uniform_(is_uniform),
      setting_{.backend = backend,
               .x = plan.rows.in,
               .dy = sources.dy.info().dtype,
               .dx = dx,
               .row_length = plan.rows.row_length,
               .weight = weight,
               .formula = plan.rows.formula},
      rows_(sources, plan, for_each_tile(threads)) {}

LoopExtent ExactGradients::extent() const {
  const Plan& plan = plan_.rows;
  return {plan.row_length > 0 ? plan.rows : 0, plan.route.rows, plan.row_length};
}

void ExactGradients::find(const Block& block, Buffers& buffers, bool wants_dx,
                          bool wants_columns) const {
  const Tile tile = tile_of(block);
  if (wants_dx) {
    buffers.dx.resize(static_cast<std::size_t>(block.count * plan_.rows.row_length) *
                      item_size(setting_.dx));
  }
  const bool gathers = wants_columns && !shares();
  if (!gathers && !wants_dx) return;
  const RowsOut dx{.data = wants_dx ? buffers.dx.data() : nullptr, .dtype = setting_.dx};
  rows_.find(setting_, plan_.rows.affine, tile, buffers.in, dx, gathers ? &columns_ : nullptr);
}

RowsIn ExactGradients::dx(const Block& block, const Buffers& buffers) const {
  return {buffers.dx.data(), setting_.dx, std::endian::native, block.count, plan_.rows.row_length};
}

ExactGradients::HeldRow ExactGradients::hold(std::int64_t number) const {
  HeldRow held{};
  Buffers buffers;
  const Block block{number, 1};
  read(block, buffers.in);
  find(block, buffers, true, false);
  for_each_row(block, buffers.in, [&](const GradientRow& row, std::int64_t) {
    const auto copy = [](std::span<const double> numbers) {
      return std::vector<double>(numbers.begin(), numbers.end());
    };
    held = {copy(row.x), copy(row.dy), copy(row.weight), copy(row.bias), {}, {}, number};
    if (row.saved != nullptr) held.saved = *row.saved;
  });
  held.dx = decoded(setting_.backend, dx(block, buffers));
  return held;
}

std::vector<GradientLosses> ExactGradients::statistic_losses(const Block& block,
                                                             const GradientRows::Buffers& in,
                                                             const JudgeSetting& setting) const {
  std::vector<std::vector<double>> x;
  std::vector<MeasuredRow> rows;
  rows.reserve(static_cast<std::size_t>(block.count));
  for (std::int64_t r = 0; r < block.count; ++r) {
    x.push_back(decoded(setting.backend, rows_.part(tile_of(block), in, r).x));
  }
  for (const std::vector<double>& row : x)
    rows.push_back({row, statistics_of(row, setting.formula)});
  std::vector<GradientLosses> losses;
  for (const SumLosses& of_row :
       losses_of(rows, setting.formula, setting.kernel.arithmetic, setting.normalized_shape)) {
    losses.push_back({of_row});
  }
  return losses;
}

std::vector<double> ExactGradients::parameters(Quantity of, ColumnGradients& columns,
                                               DType dtype) const {
  const bool is_dweight = of == Quantity::dweight;
  const RequestedColumns requested{is_dweight, !is_dweight, is_uniform_, dtype};
  const AffineLayout& layout = plan_.rows.affine;
  if (extent().items == 0) {
    return std::vector<double>(is_uniform_ ? 1
                                           : static_cast<std::size_t>(element_count(layout.shape)));
  }
  const RunOptions alone{.threads = 1};
  const RowReplay again = rows_.again(plan_.rows, alone);
  ParameterGradients found = shares() ? shared_gradients(setting_, layout, requested, again)
                                      : parameter_gradients(setting_, columns, requested, again);
  return is_dweight ? std::move(found.dweight) : std::move(found.dbias);
}

}  // namespace lnorm
