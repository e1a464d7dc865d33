#pragma once

#include <functional>
#include <optional>
#include <string>

#include "arguments.hpp"
#include "lnorm/diagnosis/diagnosis.hpp"
#include "lnorm/io/byte_sink.hpp"

namespace lnorm::app {

// The wrong kernels of --kernels and --skip-kernels, whose arguments outlive it. Throws Error for a pattern that none
// matches.
ChooseKernel kernel_choice(const Arguments& arguments);

// Writes a report into a file, if it is named.
void save_report(const std::optional<std::string>& path,
                 const std::function<void(ByteSink& out)>& write);

// Writes it on standard output.
void print_report(const std::function<void(ByteSink& out)>& write);

}  // namespace lnorm::app
