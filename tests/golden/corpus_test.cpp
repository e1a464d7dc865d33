#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <regex>

#include "lnorm/core/chunk.hpp"
#include "lnorm/io/open_tensor.hpp"
#include "lnorm/layout/reorder.hpp"
#include "support/commands.hpp"
#include "support/json.hpp"

// Every file of data/corpus behaves as its manifest says, read from a file and from a pipe.

namespace {

using namespace support;
using nlohmann::json;

enum class Verdict { accepted, refused, either };

struct Ruling {
  Verdict verdict;
  Words words = {};  // in the error line
};

// Where we go beyond or against the manifest, or where the error must say more than its class.
const std::map<std::string, Ruling> kRulings{
    // The manifest calls null an error. JavaScript and jq write NaN as null, so lnorm reads it as NaN.
    {"null.json", {Verdict::accepted}},
    // An object of one tensor needs no name for it.
    {"object_root.json", {Verdict::accepted}},
    {"dtype_le_f16_longdouble.npy", {Verdict::refused, {"'<f16' is long double"}}},
    {"object_named.json", {Verdict::refused, {"input, gamma, beta, eps", ":input"}}},
    {"bad_line.jsonl", {Verdict::refused, {":2:1: "}}},
    {"shape_change.jsonl", {Verdict::accepted}},
    {"wide_ragged_late.json", {Verdict::refused, {"row 20000 has 1 element, expected 2"}}},
    {"ragged_2d.json", {Verdict::refused, {":1:10: row 1 has 2 elements, expected 3"}}},
    {"mixed_depth2.json", {Verdict::refused, {":1:8: [1] is a number, expected a list"}}},
    {"string.json", {Verdict::refused, {":1:2: [0] is a string, expected a number"}}},
    {"shape_data_mismatch.json", {Verdict::refused, {"(3)", "6 elements", "(2, 3)"}}},
    {"data_truncated_1byte.npy", {Verdict::refused, {"needs 24 bytes, found 23"}}},
    {"gzip_named_json.json", {Verdict::refused, {"gzip"}}},
    {"lfs_pointer.npy", {Verdict::refused, {"git-lfs"}}},
    {"dtype_c16.npy", {Verdict::refused, {"complex"}}},
    {"dtype_struct.npy", {Verdict::refused, {"structured"}}},
    {"bf16_name.npy", {Verdict::refused, {"hint: --as bfloat16"}}},
    {"bad_crc_stored.npz", {Verdict::refused, {"bad_crc_stored.npz:x", "CRC-32"}}},
    {"bad_crc_deflated.npz", {Verdict::refused, {"bad_crc_deflated.npz:x", "CRC-32"}}},
    {"comment_with_eocd_magic.npz", {Verdict::refused, {"cut off"}}},  // by two bytes
    {"lzma.npz", {Verdict::refused, {"lzma"}}},
    {"no_eocd.npz", {Verdict::refused, {"no directory at its end"}}},
    {"eocd_count_lies.npz", {Verdict::refused, {"65534 members"}}},
    {"bomb_64mib.npz", {Verdict::accepted}},
    {"extra_field.safetensors", {Verdict::refused, {"'foo' is unknown"}}},
    {"hole_middle.safetensors", {Verdict::refused, {"'b'", "hole"}}},
    {"offset_one.safetensors", {Verdict::refused, {"another number of values than 2"}}},
    {"header_deep.safetensors", {Verdict::refused, {"is a list"}}},
};

// What an error of each class has to say.
const std::map<std::string, std::string> kClassWords{
    {"E_EMPTY", "empty"},     {"E_TRUNCATED", "cut off"},
    {"E_VERSION", "version"}, {"E_DTYPE", "dtype"},
    {"E_RAGGED", "expected"}, {"E_OVERFLOW", "2^63 - 1"},
    {"E_DUPKEY", "twice"},    {"E_TRAILING", "after the first value"},
    {"E_ENCODING", "UTF-16"}, {"E_RANGE", "not a value of float64"},
};

bool is_archive(const json& entry) {
  return entry.at("format") == "npz" || entry.at("format") == "safetensors";
}

Ruling ruling(const json& entry) {
  if (is_archive(entry) && entry.contains("members") && entry.at("members").size() > 1 &&
      !kRulings.contains(entry.at("file"))) {
    Ruling several{Verdict::refused, {"expected one", "hint: "}};
    for (const auto& [member, ignored] : entry.at("members").items()) {
      several.words.push_back(member);
    }
    return several;
  }
  const std::string expect = entry.at("expect");
  Ruling result{expect == "error"                            ? Verdict::refused
                : expect == "either" || expect == "optional" ? Verdict::either
                                                             : Verdict::accepted};
  if (const auto special = kRulings.find(entry.at("file")); special != kRulings.end()) {
    result = special->second;
  }
  const auto words = kClassWords.find(entry.value("error_class", ""));
  if (words != kClassWords.end() && expect == "error") result.words.push_back(words->second);
  return result;
}

bool has_place(const json& entry) {
  static const Words classes{"E_RAGGED", "E_TYPE", "E_TRAILING", "E_RANGE", "E_DEPTH", "E_DUPKEY"};
  return entry.at("format") == "json" &&
         std::find(classes.begin(), classes.end(), entry.value("error_class", "")) != classes.end();
}

void check_run(const Outcome& outcome, const json& entry, const std::string& name) {
  Ruling rule = ruling(entry);
  if (rule.verdict == Verdict::either) {
    rule.verdict = outcome.status == 0 ? Verdict::accepted : Verdict::refused;
  }
  if (rule.verdict == Verdict::accepted) {
    CHECK(outcome.status == 0);
    CHECK(outcome.err == "");
    CHECK(outcome.out != "");
  } else {
    rule.words.push_back(name);
    Outcome refused = outcome;
    if (entry.at("format") == "jsonl") {  // what comes before the bad line has been written
      CHECK(refused.out.ends_with('\n'));
      refused.out.clear();
    }
    CHECK(refusal_fault(refused, rule.words) == "");
    if (has_place(entry)) {  // name:line:column
      CHECK(std::regex_search(outcome.err.substr(outcome.err.find(name) + name.size()),
                              std::regex("^:[0-9]+:[0-9]+: ")));
    }
  }
  CHECK(outcome.cpu_seconds < 5);
#ifndef LNORM_SANITIZED  // which needs much more itself
  CHECK(outcome.peak_kib < 256 * 1024);
#endif
}

void check_both_ways(const json& entry, const std::string& folder) {
  const std::string name = entry.at("file");
  INFO(folder << "/" << name);
  // As .safetensors a tensor would be called as the file.
  const Words to = entry.at("format") == "safetensors" ? "--to npy"_w : Words{};
  const Outcome from_file = run({.arguments = Words{name} + to, .directory = folder});
  check_run(from_file, entry, name);
  const Outcome from_pipe = run(entry.at("format") == "jsonl" ? "--from jsonl"_w : to,
                                pipe_of(read_file(folder + "/" + name)));
  INFO("from a pipe");
  if (entry.at("format") == "npz") {  // unless something else comes first, or it is cut off there
    const bool is_zip = read_file(folder + "/" + name).starts_with("PK\x03\x04");
    CHECK(refusal_fault(from_pipe, {"standard input", is_zip ? "from a pipe" : ""}) == "");
    return;
  }
  check_run(from_pipe, entry, "standard input");
  CHECK(from_pipe.status == from_file.status);
  CHECK(from_pipe.out == from_file.out);
}

// The elements as the library decodes them for its kernels; long double holds every 64-bit integer.
std::vector<long double> decode(lnorm::TensorSource& source) {
  const lnorm::TensorInfo& info = source.info();
  const std::vector<std::byte> bytes = read_all(source);
  const auto size = static_cast<std::int64_t>(item_size(info.dtype));
  const auto count = static_cast<std::int64_t>(bytes.size()) / size;
  std::vector<long double> elements;
  const auto chunk = std::make_unique<lnorm::Chunk>();
  for (std::int64_t first = 0; first < count; first += lnorm::kChunk) {
    const std::int64_t n = std::min(lnorm::kChunk, count - first);
    lnorm::load(bytes.data() + first * size, info.dtype, info.byte_order, n, *chunk);
    for (std::int64_t i = 0; i < n; ++i) {
      elements.push_back(chunk->high[i]);
      if (lnorm::has_low(info.dtype)) elements.back() += chunk->low[i];
    }
  }
  return elements;
}

long double number(const json& value) {
  return value.is_string() ? std::strtold(value.get<std::string>().c_str(), nullptr)
                           : value.get<double>();
}

bool same(long double a, long double b) {
  return std::isnan(a) ? std::isnan(b) : a == b && std::signbit(a) == std::signbit(b);
}

std::vector<long double> expected_elements(const json& entry, const std::string& path) {
  std::vector<long double> expected;
  if (entry.contains("values")) {
    for (const json& value : entry.contains("exact") ? entry["exact"] : entry["values"]) {
      expected.push_back(number(value));
    }
  } else if (entry.value("format", "") == "json") {  // too large for the manifest
    for (const double value : parse_nested(read_file(path)).elements) expected.push_back(value);
  }
  return expected;
}

void check_elements(const json& entry, const std::string& path, std::string_view dtype) {
  INFO(path);
  const auto source = lnorm::gathered(lnorm::open_tensor(path, {}).source);
  const lnorm::TensorInfo& info = source->info();
  CHECK(info.shape == entry.at("shape").get<lnorm::Shape>());
  CHECK(name(info.dtype) == dtype);
  const auto actual = decode(*source);
  CHECK(actual.size() == entry.value("count", actual.size()));
  const auto expected = expected_elements(entry, path);
  if (expected.empty()) return;
  REQUIRE(actual.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    INFO("element " << i << " is " << actual[i] << ", expected " << expected[i]);
    const bool any_zero =
        entry.value("file", "") == "negzero.json" && i == 0;  // "-0" without a fraction
    CHECK((any_zero ? actual[i] == 0 : same(actual[i], expected[i])));
  }
}

void check_nested(lnorm::TensorSource& source, const json& elements) {
  const Nested expected = parse_nested(elements.dump());
  CHECK(source.info().shape == expected.shape);
  const auto actual = decode(source);
  CHECK(
      std::equal(actual.begin(), actual.end(), expected.elements.begin(), expected.elements.end()));
}

const json& manifest(const std::string& folder) {
  static std::map<std::string, json> manifests;
  auto& manifest = manifests[folder];
  if (manifest.is_null()) manifest = support::parsed_json(read_file(folder + "/manifest.json"));
  return manifest;
}

}  // namespace

TEST_CASE("every file of the corpus is accepted or refused as its manifest says", "[many]") {
  for (const std::string& folder : {data_file("corpus/good"), data_file("corpus/bad")}) {
    const json& files = manifest(folder).at("files");
    CHECK(files.size() + 1 == list_directory(folder).size());
    for (const json& entry : files) check_both_ways(entry, folder);
  }
}

TEST_CASE("the good files of the corpus hold the values of their manifest") {
  const std::string folder = data_file("corpus/good");
  int checked = 0;
  for (const json& entry : manifest(folder).at("files")) {
    const bool several = is_archive(entry) || entry.at("format") == "jsonl";
    if (several || ruling(entry).verdict != Verdict::accepted) continue;
    check_elements(entry, folder + "/" + entry.at("file").get<std::string>(),
                   entry.value("dtype", "float32"));
    ++checked;
  }
  CHECK(checked > 30);
}

TEST_CASE("every line of the corpus' JSON Lines is the record of the manifest") {
  const std::string folder = data_file("corpus/good");
  for (const json& entry : manifest(folder).at("files")) {
    if (entry.at("format") != "jsonl") continue;
    const std::string path = folder + "/" + entry.at("file").get<std::string>();
    const auto tensors = std::get<lnorm::TensorLines>(lnorm::open_inputs({&path, 1}, {}));
    for (const json& record : entry.at("records")) {
      const auto line = tensors();
      REQUIRE(line.has_value());
      check_nested(*line->source, record);
    }
    CHECK_FALSE(tensors().has_value());
  }
}

TEST_CASE("every member of the corpus' archives holds the values of the manifest", "[many]") {
  const std::string folder = data_file("corpus/good");
  std::map<std::string, int> checked;
  for (const json& entry : manifest(folder).at("files")) {
    if (!is_archive(entry) || kRulings.contains(entry.at("file"))) continue;
    const std::string format = entry.at("format");
    const std::string path = folder + "/" + entry.at("file").get<std::string>();
    const std::string listed = output_of({"show", path});
    for (const auto& [member, tensor] : entry.at("members").items()) {
      const std::string name = path + ":" + member;
      // The manifest tells what bfloat16 widens to.
      const std::string dtype =
          entry.at("file") == "bf16.safetensors" ? "bfloat16" : tensor.at("dtype");
      check_elements(tensor, name, dtype);
      CHECK(std::regex_search(listed, std::regex("(^|\n)" + member + " +" + dtype + " +")));
      const std::string of_pipe = "-:" + member;
      if (format == "safetensors") {
        CHECK(output_of({"show", of_pipe}, pipe_of(read_file(path))) == output_of({"show", name}));
        CHECK(output_of({of_pipe, "--to", "json"}, pipe_of(read_file(path))) ==
              output_of({name, "--to", "json"}));
      } else {
        CHECK(output_of({of_pipe, "--from", "npz"}, file(path)) == output_of({name}));
        CHECK(output_of({name + ".npy"}) == output_of({name}));
      }
      ++checked[format];
    }
  }
  CHECK(checked["npz"] > 10);
  CHECK(checked["safetensors"] > 14);
}

TEST_CASE("every member of an object is a tensor of its own") {
  const std::string folder = data_file("corpus/good");
  for (const json& entry : manifest(folder).at("files")) {
    if (entry.at("file") != "object_named.json") continue;
    for (const auto& [key, value] : entry.at("members").items()) {
      INFO(key);
      check_nested(*lnorm::open_tensor(folder + "/object_named.json:" + key, {}).source, value);
    }
  }
}

TEST_CASE("null in JSON is NaN") {
  const auto opened = lnorm::open_tensor(data_file("corpus/bad/null.json"), {});
  const auto actual = decode(*opened.source);
  REQUIRE(actual.size() == 3);
  CHECK(actual[0] == 1);
  CHECK(std::isnan(actual[1]));
  CHECK(actual[2] == 3);
}
