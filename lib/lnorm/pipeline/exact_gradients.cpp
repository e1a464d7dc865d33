#include "lnorm/pipeline/exact_gradients.hpp"

#include <bit>

#include "lnorm/core/dtype_table.hpp"

namespace lnorm {

ExactGradients::ExactGradients(const GradSources& sources, const GradPlan& plan,
                               const Backend& backend, const AffineTerm& weight, DType dx,
                               int threads)
    : plan_(plan),
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

void ExactGradients::begin(const Block& block, GradientRows::Buffers& in) {
  rows_.begin(tile_of(block), in);
  rows_.begin_saved(tile_of(block), in);
}

void ExactGradients::read(const Block& block, GradientRows::Buffers& in) const {
  rows_.read(tile_of(block), in);
  rows_.read_saved(tile_of(block), in);
}

void ExactGradients::find(const Block& block, Buffers& buffers, bool wants_dx,
                          bool wants_columns) const {
  const Tile tile = tile_of(block);
  if (wants_dx) {
    buffers.dx.resize(static_cast<std::size_t>(block.count * plan_.rows.row_length) *
                      item_size(setting_.dx));
  }
  if (wants_columns && !buffers.columns) {
    buffers.columns = std::make_unique<ColumnGradients>(plan_.rows.row_length);
  }
  layer_norm_backward(setting_.backend, rows_.x(tile, buffers.in), rows_.dy(tile, buffers.in),
                      {.data = wants_dx ? buffers.dx.data() : nullptr, .dtype = setting_.dx},
                      setting_.weight, setting_.formula, GradientRows::saved(buffers.in, 0),
                      buffers.columns.get());
}

RowsIn ExactGradients::dx(const Block& block, const Buffers& buffers) const {
  return {buffers.dx.data(), setting_.dx, std::endian::native, block.count, plan_.rows.row_length};
}

std::vector<double> ExactGradients::parameters(Gradient of, ColumnGradients* columns,
                                               bool is_uniform, DType dtype) const {
  const bool is_dweight = of == Gradient::dweight;
  if (columns == nullptr) {
    return std::vector<double>(is_uniform ? 1 : static_cast<std::size_t>(plan_.rows.row_length));
  }
  ParameterGradients found = parameter_gradients(
      setting_, *columns, {is_dweight, !is_dweight, is_uniform, dtype}, again());
  return is_dweight ? std::move(found.dweight) : std::move(found.dbias);
}

// Reads all rows once more, one after another.
RowReplay ExactGradients::again() const {
  const auto for_each = [this](const auto& see) {
    GradientRows::Buffers buffer;
    for (std::int64_t r = 0; r < extent().items; ++r) {
      const Block block{r, 1};
      read(block, buffer);
      const GradientPart part = rows_.part(tile_of(block), buffer, 0);
      see(
          0, [&](const auto& see_part) { see_part(part); }, GradientRows::saved(buffer, 0));
    }
  };
  return {1, for_each};
}

}  // namespace lnorm
