
#include "fuzz/in_memory.hpp"
#include "fuzz/targets.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/io/json/json_tensor.hpp"
#include "support/sets.hpp"

namespace {

using namespace fuzz;

std::string written(const lnorm::TensorInfo& info, std::span<const std::byte> elements) {
  return file_of([&](lnorm::ByteSink& bytes) {
    put(*make_json_sink(bytes, info, lnorm::JsonNan::python), elements);
  });
}

// The text with its dtype beside it, which the nested form does not tell.
std::string with_dtype(const std::string& text, const lnorm::TensorInfo& info) {
  std::string extents;
  for (const std::int64_t extent : info.shape) {
    extents += lnorm::concat(extents.empty() ? "" : ",", extent);
  }
  return lnorm::concat("{\"shape\":[", extents, "],\"data\":", text, ",\"dtype\":\"",
                       name(info.dtype), "\"}");
}

void check(std::string_view text, const std::optional<std::string>& member) {
  const auto tensor = unless_refused([&] {
    const auto set = lnorm::open_json(memory_source(text));
    for (const lnorm::Member& listed : support::list(*set)) {
      require(set->find(listed.name).has_value(), "what is listed has its name");
    }
    return support::read_tensor(*set, member);
  });
  if (!tensor) return;
  const auto& [info, elements] = *tensor;
  if (!lnorm::is_floating(info.dtype)) return;  // JSON is written of floats only
  std::string json = written(info, elements);
  if (!elements.empty()) json = with_dtype(json, info);
  const auto again = lnorm::parse_json("y.json", json);  // which refuses nothing that we write
  require(again->info().shape == info.shape, "the shape comes back");
  if (elements.empty()) return;
  require(again->info().dtype == info.dtype, "the dtype comes back");
  require(read_all(*again) == elements, "the bits come back");
}

}  // namespace

int fuzz_json(const std::uint8_t* data, std::size_t size) {
  for (const auto& member : {std::optional<std::string>(), std::optional<std::string>("a"),
                             std::optional<std::string>("data"), std::optional<std::string>("")}) {
    check(bytes_of(data, size), member);
  }
  return 0;
}
