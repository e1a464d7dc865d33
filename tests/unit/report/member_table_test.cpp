#include <limits>
#include <nlohmann/json.hpp>

#include "lnorm/report/reports.hpp"
#include "support/catch.hpp"
#include "support/json.hpp"
#include "support/written.hpp"

namespace {

using lnorm::Member;
using nlohmann::json;

using Write = void (*)(std::span<const Member>, lnorm::ByteSink&);

std::string written(Write write, const std::vector<Member>& members) {
  return support::written([&](lnorm::ByteSink& bytes) { write(members, bytes); });
}

const std::vector<Member> kMembers{{"h.0.weight", "float32", lnorm::Shape{768}, 3072},
                                   {"\u00e9, \"x\"", "bool", lnorm::Shape{2, 3}, 6},
                                   {"q\n", "F8_E4M3", lnorm::Shape{4}, {}},
                                   {"o", "(a reason that is longer than dtypes are)", {}, {}}};

}  // namespace

TEST_CASE("a listing has names, dtypes, shapes and sizes in columns, then a total", "[report]") {
  CHECK(written(lnorm::write_text, kMembers) ==
        "h.0.weight  float32  (768)   3.00 KiB\n"
        "\u00e9, \"x\"      bool     (2, 3)       6 B\n"
        "q\\n         F8_E4M3  (4)\n"
        "o           (a reason that is longer than dtypes are)\n"
        "3 tensors, 3.01 KiB, 1 of unknown size; 1 that cannot be read\n");
  CHECK(written(lnorm::write_text, {}) == "no tensors\n");
  CHECK(written(lnorm::write_text, {{"o", "object", {}, {}}}) ==
        "o  object\n0 tensors; 1 that cannot be read\n");
}

TEST_CASE("a listing as JSON and as CSV has exact bytes and whole names", "[report]") {
  const json list = support::parsed_json(written(lnorm::write_json, kMembers));
  CHECK(list == support::parsed_json(R"json({"schema": 1, "command": "show", "tensors": [
      {"name": "h.0.weight", "dtype": "float32", "shape": [768], "bytes": 3072},
      {"name": "\u00e9, \"x\"", "dtype": "bool", "shape": [2, 3], "bytes": 6},
      {"name": "q\n", "dtype": "F8_E4M3", "shape": [4], "bytes": null},
      {"name": "o", "dtype": "(a reason that is longer than dtypes are)", "shape": null,
       "bytes": null}], "summary": {"tensors": 4, "bytes": 3078}})json"));
  CHECK(support::parsed_json(written(lnorm::write_json, {}))["tensors"] == json::array());
  CHECK(written(lnorm::write_csv, kMembers) ==
        "name,dtype,shape,bytes\n"
        "h.0.weight,float32,(768),3072\n"
        "\"\u00e9, \"\"x\"\"\",bool,\"(2, 3)\",6\n"
        "\"q\n\",F8_E4M3,(4),\n"
        "o,(a reason that is longer than dtypes are),,\n");
}

TEST_CASE("sizes that cannot be summed are not", "[report]") {
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  const std::vector<Member> members(2, {"x", "uint8", lnorm::Shape{kMax}, kMax});
  CHECK(written(lnorm::write_text, members).ends_with("8.00 EiB\n2 tensors\n"));
  CHECK(support::parsed_json(written(lnorm::write_json, members))["summary"]["bytes"].is_null());
}
