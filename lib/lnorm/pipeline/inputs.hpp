#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lnorm/core/options.hpp"
#include "lnorm/core/tensor_info.hpp"
#include "lnorm/kernel/quantize.hpp"
#include "lnorm/pipeline/plan.hpp"

// Inputs that tell wrong kernels from right ones.
namespace lnorm {

inline constexpr std::string_view kGenerator = "Philox4x32-10";

struct InputsOptions {
  Shape shape;
  DType dtype = DType::float32;  // one of the larger floats
  LayerNormOptions normalization;
  // How kernels quantize, if they do; rounding is dtype then. needs: as of plans of quantized rows.
  std::optional<Quantization> quantization;
  RowNeeds needs = {};
  std::uint64_t seed = 0;
  int threads = 0;
};

// In C order and native byte order.
struct MadeTensor {
  TensorInfo info;
  std::vector<std::byte> elements;
};

struct MadeCase {
  std::string name;
  std::string purpose;
  MadeTensor x;
  MadeTensor weight = {};
  MadeTensor bias = {};
  std::optional<MadeTensor> dy = {};
  std::vector<std::string> kills = {};  // ids
};

struct MadeInputs {
  std::vector<MadeCase> cases;
  std::vector<std::string> alive;              // ids that no case kills
  std::vector<std::string> equivalent;         // by formula
  std::vector<std::vector<std::string>> same;  // ids of what is one formula here
  // Of a kernel that has no weight and no bias: its results are x-hat, and nothing cancels. What changes them by less than
  // the tolerance no input tells.
  std::vector<std::string> alive_without_affine;
};

// At most thirteen cases. A wrong kernel is killed where its results are not within the default tolerance of the dtype; one
// that rounds the other way where they are off by more than half an ulp; one that quantizes where q is another number, or a
// scale is not within the default tolerance of float32. Small inputs are drawn again, up to so many times, until none is alive,
// without weight and bias either. The same options give the same bytes on every machine. Throws Error.
MadeInputs make_inputs(const InputsOptions& options);

}  // namespace lnorm
