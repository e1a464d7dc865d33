#pragma once

#include <optional>

#include "lnorm/core/options.hpp"
#include "lnorm/core/tensor_info.hpp"
#include "lnorm/layout/tiles.hpp"
#include "lnorm/pipeline/plan.hpp"

namespace lnorm {

// What a backward pass is to find.
struct RequestedGradients {
  bool dx = true;
  bool dweight = true;
  bool dbias = true;
};

// The tensors that a backward pass reads, as their headers say. mean and rstd: what a forward pass has saved, if
// they take the place of what would be computed.
struct GradientInputs {
  TensorInfo x;
  TensorInfo dy;
  std::optional<TensorInfo> mean = {};
  std::optional<TensorInfo> rstd = {};  // or the variance
};

// Every decision about a backward pass. dweight and dbias are sums over all rows: where their bounds leave a digit
// open all rows are read once more, so that all that is read needs random access. Tensors in different memory orders
// are brought into C order.
struct GradPlan {
  Plan rows;  // of x, and of dx; dy lies in rows as x does
  RequestedGradients requested;
  bool shares_weights = false;  // elements of a row, or of some rows, by the layout
  IoPath dy;
  IoPath mean;  // along rows.row_number_view, as rstd
  IoPath rstd;
};

// dtype: of dx; as of make_plan, and needs beside dy. Throws Error, in the words of the command line, if the tensors or the options do
// not fit together.
GradPlan make_grad_plan(const GradientInputs& inputs, const LayerNormOptions& options,
                        std::optional<DType> dtype = {}, const RequestedGradients& requested = {},
                        const RowNeeds& needs = {});

// Throws Error unless saved statistics have a number for each row of x, of these normalized axes.
void check_saved(const TensorInfo& saved, const TensorInfo& x, const Axes& axes);

// What dweight and dbias are, but for their names: in the shape of the weight, if there is one, else the normalized
// shape; of dtype, if it is given, else the weight's, if that is a float, else dx's.
TensorInfo parameter_gradient(const Plan& plan, const TensorInfo* weight,
                              std::optional<DType> dtype);

}  // namespace lnorm
