#include "support/json.hpp"

namespace support {

nlohmann::json parsed_json(std::string_view text) { return nlohmann::json::parse(text); }

}  // namespace support
