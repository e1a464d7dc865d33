#pragma once

#include <string>
#include <string_view>

#include "lnorm/core/options.hpp"

namespace lnorm::app {

// The option that chooses the norm; empty for the usual one.
std::string_view option_of(const Formula& formula);

// Returns the options of the command line for these, without those that name tensors: "--eps 0.001 --rms"; "no options" if all
// are the default.
std::string normalization_text(const LayerNormOptions& options);

}  // namespace lnorm::app
