#include <vector>

#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/kernel/layer_norm.hpp"
#include "lnorm/kernel/simd.hpp"
#include "lnorm/kernel/two_pass.hpp"

namespace lnorm {

std::span<const Kernel> kernels() {
  static const std::vector<Kernel> all = [] {
    std::vector<Kernel> result = simd_kernels();
    result.push_back({"portable", layer_norm_portable, &portable_passes});
    result.push_back({"reference", layer_norm_reference, nullptr});
    return result;
  }();
  return all;
}

const Kernel& find_kernel(std::string_view name) {
  std::string names;
  for (const Kernel& kernel : kernels()) {
    if (kernel.name == name) return kernel;
    names += concat(names.empty() ? "" : ", ", kernel.name);
  }
  throw Error(concat("no kernel is named '", printable(name), "', expected one of ", names));
}

const Passes& best_passes() { return *kernels().front().passes; }

}  // namespace lnorm
