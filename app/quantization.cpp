#include "quantization.hpp"

#include "lnorm/core/dtype_table.hpp"
#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"

namespace lnorm::app {

bool is_quantized_dtype(DType dtype) { return dtype == DType::int8 || is_float8(dtype); }

void check_quantization(const Arguments& arguments) {
  const QuantizationArguments& quantization = arguments.quantization;
  const std::optional<DType> dtype = arguments.output.dtype;
  if (!quantization) {
    if (quantization.rounds_y) throw Error("--round y has no effect without --quantize");
    const bool is_alone = arguments.command == kInputs && dtype && is_quantized_dtype(*dtype);
    if (dtype == DType::int8 || is_alone) {
      throw Error(
          concat(name(*dtype), " takes a scale: --dtype ", name(*dtype), " is for --quantize"),
          "--quantize row");
    }
    return;
  }
  const bool writes = arguments.command != kCheck;
  if (writes && (!dtype || !is_quantized_dtype(*dtype))) {
    throw Error(concat("--quantize rounds to ", dtype_list(is_quantized_dtype), ", found ",
                       dtype ? concat("--dtype ", name(*dtype)) : "no --dtype"),
                dtype ? "" : "--dtype int8");
  }
  const bool is_given = quantization.scale_of == ScaleOf::given;
  if (is_given != arguments.tensors.contains(TensorRole::given_scale)) {
    throw Error("--quantize static and --given-scale belong together, found one of them");
  }
  const bool computes_otherwise = quantization.qmax > 0 || quantization.amax_min > 0 ||
                                  quantization.amax_max < kInfinity || quantization.scale_min > 0 ||
                                  quantization.scale_max < kInfinity || quantization.power_of_two;
  const bool has_scales = arguments.results.contains(Result::scale) ||
                          arguments.tensors.contains(TensorRole::actual_scale);
  if (is_given && (computes_otherwise || has_scales)) {
    throw Error(
        "--quantize static computes no scale: --qmax, bounds, --scale-power-of-two, --save-scale "
        "and "
        "--actual-scale have no effect");
  }
  if (quantization.axes && arguments.input.rows) {
    throw Error(
        "--rows has no effect beside --quantize-axes: all rows that share a scale are read");
  }
  if (quantization.axes && quantization.scale_of != ScaleOf::row) {
    throw Error("--quantize-axes is for --quantize row", "--quantize row");
  }
  if (quantization.amax_min > quantization.amax_max ||
      quantization.scale_min > quantization.scale_max) {
    const bool is_amax = quantization.amax_min > quantization.amax_max;
    throw Error(concat(is_amax ? "--amax-min" : "--scale-min", " is above ",
                       is_amax ? "--amax-max" : "--scale-max"));
  }
}

RowNeeds quantized_rows(const QuantizationArguments& arguments) {
  RowNeeds needs{.whole = true, .any_dtype = true, .bytes_beside = 4};
  if (arguments.scale_of == ScaleOf::row) needs.scale_group = 0;
  needs.one_scale = arguments.scale_of == ScaleOf::tensor;
  needs.scale_axes = arguments.axes;
  if (arguments.scale_of == ScaleOf::group) needs.scale_group = arguments.group;
  return needs;
}

RowNeeds observed_rows(const QuantizationArguments& arguments) {
  if (!arguments) return kWholeRows;
  RowNeeds needs = quantized_rows(arguments);
  needs.ordered = true;
  return needs;
}

Quantization quantization_of(const QuantizationArguments& arguments, const Plan& plan) {
  Quantization quantization = arguments;
  quantization.dtype = plan.out;
  quantization.rounding = plan.rounding;
  if (quantization.qmax == 0) quantization.qmax = default_qmax(plan.out);
  return quantization;
}

}  // namespace lnorm::app
