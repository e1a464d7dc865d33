#include "lnorm/core/dtype.hpp"

#include <algorithm>
#include <array>

namespace lnorm {

namespace {

struct Entry {
  DType dtype;
  std::string_view name;
};

constexpr std::array kNames{
    Entry{DType::boolean, "bool"},      Entry{DType::int8, "int8"},
    Entry{DType::int16, "int16"},       Entry{DType::int32, "int32"},
    Entry{DType::int64, "int64"},       Entry{DType::uint8, "uint8"},
    Entry{DType::uint16, "uint16"},     Entry{DType::uint32, "uint32"},
    Entry{DType::uint64, "uint64"},     Entry{DType::float16, "float16"},
    Entry{DType::bfloat16, "bfloat16"}, Entry{DType::float32, "float32"},
    Entry{DType::float64, "float64"},
};

}  // namespace

std::string_view name(DType dtype) {
  return std::find_if(kNames.begin(), kNames.end(),
                      [&](const Entry& e) { return e.dtype == dtype; })
      ->name;
}

std::optional<DType> parse_dtype(std::string_view name) {
  const auto* entry =
      std::find_if(kNames.begin(), kNames.end(), [&](const Entry& e) { return e.name == name; });
  if (entry == kNames.end()) return std::nullopt;
  return entry->dtype;
}

std::size_t item_size(DType dtype) {
  return visit(dtype, [](auto element) { return sizeof(element); });
}

bool is_floating(DType dtype) {
  return dtype == DType::float16 || dtype == DType::bfloat16 || dtype == DType::float32 ||
         dtype == DType::float64;
}

}  // namespace lnorm
