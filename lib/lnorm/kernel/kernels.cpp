#include <array>

#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/kernel/layer_norm.hpp"

namespace lnorm {

std::span<const Kernel> kernels() noexcept {
  static constexpr std::array kKernels{
      Kernel{"portable", layer_norm_portable},
      Kernel{"reference", layer_norm_reference},
  };
  return kKernels;
}

const Kernel& find_kernel(std::string_view name) {
  std::string names;
  for (const Kernel& kernel : kernels()) {
    if (kernel.name == name) return kernel;
    names += concat(names.empty() ? "" : ", ", kernel.name);
  }
  throw Error(concat("no kernel is named '", printable(name), "', expected one of ", names));
}

}  // namespace lnorm
