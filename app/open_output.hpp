#pragma once

#include <functional>
#include <string>

namespace lnorm::app {

// Calls open(), which opens what an option has named. Throws Error, which names the option, if that fails.
void open_output(const std::string& option, const std::string& path,
                 const std::function<void()>& open);

}  // namespace lnorm::app
