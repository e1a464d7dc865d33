#include "lnorm/pipeline/exact_gradients.hpp"

#include <bit>
#include <utility>

#include "lnorm/kernel/row_errors.hpp"

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

void ExactGradients::fill_row(const Block& block, const GradientRows::Buffers& in, std::int64_t r,
                              SampleRow& row) const {
  const GradientPart part = rows_.part(tile_of(block), in, r);
  row.number = block.first + r;
  row.x.resize(decode(setting_.backend, part.x, row.x).size());
  row.dy.resize(decode(setting_.backend, part.dy, row.dy).size());
  row.affine = own_affine(setting_.weight, bias_, plan_.rows, row.number);
  if (const SavedStatistics* const saved = GradientRows::saved(in, r)) row.saved = *saved;
  row.losses = {};
}

std::vector<SumLosses> ExactGradients::losses_of_block(const Block& block,
                                                       const GradientRows::Buffers& in,
                                                       const JudgeSetting& setting) const {
  std::vector<SampleRow> rows;
  for_each_row(block, in, [&](const SampleRow& row) { rows.push_back(row); });
  return losses_of(setting, rows);
}

SampleRow ExactGradients::row(std::int64_t number) const {
  Buffers buffers;
  const Block block{number, 1};
  rows_.read_rows(tile_of(block), buffers.in);
  find(block, buffers, true, false);
  SampleRow row;
  fill_row(block, buffers.in, 0, row);
  row.exact = decoded(setting_.backend, dx(block, buffers));
  return row;
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
