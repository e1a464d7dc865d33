#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

namespace support {

// Throws as nlohmann::json::parse, whose templates are compiled once here: not in each test, which nothing optimizes.
nlohmann::json parsed_json(std::string_view text);

}  // namespace support
