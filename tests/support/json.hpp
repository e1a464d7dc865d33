#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

namespace support {

// As nlohmann::json::parse. It is compiled once here, and optimized, as tests are not.
nlohmann::json parsed_json(std::string_view text);

}  // namespace support
