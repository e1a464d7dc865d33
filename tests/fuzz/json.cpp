#include <string>

#include "fuzz/in_memory.hpp"
#include "fuzz/targets.hpp"
#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/io/json/json_tensor.hpp"
#include "support/sets.hpp"

namespace {

using namespace fuzz;

std::string written(const lnorm::TensorInfo& info, std::span<const std::byte> elements) {
  const MemoryFile file;
  lnorm::ByteSink bytes(file.path());
  const auto sink = make_json_sink(bytes, info, lnorm::JsonNan::python);
  std::string buffer;
  if (!elements.empty()) sink->write(sink->encode(0, elements, buffer));
  sink->finish();
  bytes.finish();
  return file.content();
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
  support::WholeTensor tensor;
  try {
    const auto set = lnorm::open_json(std::make_unique<MemorySource>(text));
    for (const lnorm::Member& listed : support::list(*set)) {
      require(set->find(listed.name).has_value(), "what is listed has its name");
    }
    tensor = support::read_tensor(*set, member);
  } catch (const lnorm::Error&) {
    return;
  }
  const auto& [info, elements] = tensor;
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
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const auto& member : {std::optional<std::string>(), std::optional<std::string>("a"),
                             std::optional<std::string>("data"), std::optional<std::string>("")}) {
    check(text, member);
  }
  return 0;
}
