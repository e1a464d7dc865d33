#pragma once

#include <string_view>

// What every page contains, embedded by the build (cmake/embed_page.cmake).
namespace lnorm::page {

extern const std::string_view script;       // Vega, and page.js
extern const std::string_view script_hash;  // as a Content-Security-Policy has it
extern const std::string_view style;
extern const std::string_view style_hash;
extern const std::string_view license;  // of Vega

}  // namespace lnorm::page
