#pragma once

#include <string>

#include "lnorm/core/options.hpp"

namespace lnorm::app {

// The options that say the same, without those of tensors: "--rms --eps 0.001"; "no options" if there are none.
std::string normalization_text(const LayerNormOptions& options);

}  // namespace lnorm::app
