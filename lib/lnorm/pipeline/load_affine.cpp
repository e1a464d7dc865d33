#include "lnorm/pipeline/load_affine.hpp"

#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"

namespace lnorm {

void check_affine_shape(std::string_view role, const TensorInfo& term, const Plan& plan) {
  const Shape expected = plan.normalized_shape();
  if (term.shape.empty() || term.shape == expected) return;
  throw Error(concat(printable(term.name), ": ", role, " has shape ", to_string(term.shape),
                     ", but the normalized shape is ", to_string(expected)));
}

AffineTerm load_affine_term(std::string_view role, TensorSource& source, const Plan& plan,
                            bool plus_one) {
  const TensorInfo& info = source.info();
  check_affine_shape(role, info, plan);
  std::vector<std::byte> elements = read_all(source);
  if (info.order == MemoryOrder::fortran && !elements.empty()) {
    std::vector<std::byte> ordered(elements.size());
    const RowView view = fortran_row(info.shape);
    view.raw_to_rows({0, 1, 0, view.row_length()}, item_size(info.dtype), elements.data(),
                     ordered.data(), view.row_length());
    elements = std::move(ordered);
  }
  return {info, elements, plus_one};
}

}  // namespace lnorm
