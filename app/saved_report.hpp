#pragma once

#include <functional>
#include <optional>
#include <string>

#include "lnorm/io/byte_sink.hpp"

namespace lnorm::app {

// Writes a report into a file, if it is named.
void save_report(const std::optional<std::string>& path,
                 const std::function<void(ByteSink& out)>& write);

// Writes it on standard output.
void print_report(const std::function<void(ByteSink& out)>& write);

}  // namespace lnorm::app
