#include "lnorm/io/manifest.hpp"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/io/byte_source.hpp"
#include "lnorm/io/json/json_text.hpp"

namespace lnorm {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMaxBytes = 10'000'000;

bool is_manifest_folder(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
}

// Reads the cases, whose tensors lie in a folder or a file.
class ManifestReader {
 public:
  ManifestReader(std::string path, std::string inputs)
      : path_(std::move(path)), inputs_(std::move(inputs)) {}

  Manifest read() const {
    const Json manifest = parsed();
    const Json& cases = manifest["cases"];
    std::vector<InputCase> result;
    for (const Json& one : cases) {
      const std::string place = concat("case ", result.size());
      if (!one.is_object()) fail(concat(place, ": expected an object"));
      check_keys(one, place);
      result.push_back({.name = text(one, "name", place).value_or(place),
                        .x = tensor(one, "x", place).value_or(""),
                        .weight = tensor(one, "weight", place),
                        .bias = tensor(one, "bias", place),
                        .dy = tensor(one, "dy", place)});
      if (result.back().x.empty()) fail(concat(place, ": has no \"x\""));
      const std::string& name = result.back().name;
      if (std::count_if(result.begin(), result.end(),
                        [&](const InputCase& other) { return other.name == name; }) > 1) {
        fail(concat(place, ": is called ", printable(name), ", like another case"));
      }
    }
    if (result.empty()) fail("has no cases");
    return {.options = text(manifest, "options", "the manifest").value_or(""),
            .cases = std::move(result)};
  }

  // A document that has cases.
  Json parsed() const {
    Json manifest = parse();
    const auto cases = manifest.is_object() ? manifest.find("cases") : manifest.end();
    if (manifest.is_object() && manifest.value("schema", Json(1)) != Json(1)) {
      fail(concat("has schema ", manifest["schema"].dump(), ", expected 1"));
    }
    if (cases == manifest.end() || !cases->is_array()) fail("has no array \"cases\"");
    return manifest;
  }

 private:
  Json parse() const {
    std::vector<std::byte> text;
    open_file(path_)->read(text, kMaxBytes + 1);
    if (text.size() > kMaxBytes) fail(concat("a manifest of more than ", kMaxBytes, " bytes"));
    try {
      return Json::parse(as_text(text));
    } catch (const Json::parse_error& error) {
      const JsonText json(path_, as_text(text));
      const char* const at =
          json.begin() + std::clamp<std::size_t>(error.byte, 1, text.size() + 1) - 1;
      json.fail(at, concat("found ", json.found(at), ", expected JSON"));
    } catch (const Json::exception&) {
      fail("has a number that is too large");
    }
  }

  // A misspelled key would leave out a tensor in silence.
  void check_keys(const Json& one, const std::string& place) const {
    constexpr std::string_view kKeys[] = {"name", "x", "weight", "bias", "dy", "for", "kills"};
    for (const auto& [key, value] : one.items()) {
      if (std::find(std::begin(kKeys), std::end(kKeys), key) != std::end(kKeys)) continue;
      fail(concat(place, ": has \"", printable(key), "\", expected ",
                  listed(std::vector<std::string>(std::begin(kKeys), std::end(kKeys)), " or ")));
    }
  }

  std::optional<std::string> text(const Json& one, const char* key,
                                  const std::string& place) const {
    const auto found = one.find(key);
    if (found == one.end() || found->is_null()) return {};
    if (!found->is_string()) fail(concat(place, ": \"", key, "\" is no text"));
    return found->get<std::string>();
  }

  // A file of the folder, never outside of it; or a member.
  std::optional<std::string> tensor(const Json& one, const char* key,
                                    const std::string& place) const {
    const std::optional<std::string> name = text(one, key, place);
    if (!name) return {};
    if (!is_manifest_folder(inputs_)) return concat(inputs_, ':', *name);
    if (name->empty() || name->find('/') != name->npos || name->find('\0') != name->npos ||
        *name == "..") {
      fail(concat(place, ": \"", key, "\" is no file of the folder"));
    }
    return (std::filesystem::path(inputs_) / *name).string();
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw Error(concat(printable(path_), ": ", what));
  }

  std::string path_;
  std::string inputs_;
};

Json or_null(const std::optional<std::string>& text) { return text ? Json(*text) : Json(); }

}  // namespace

std::string manifest_json(const Manifest& manifest) {
  Json cases = Json::array();
  for (const InputCase& one : manifest.cases) {
    cases.push_back({{"name", one.name},
                     {"x", one.x},
                     {"weight", or_null(one.weight)},
                     {"bias", or_null(one.bias)},
                     {"dy", or_null(one.dy)},
                     {"for", one.purpose},
                     {"kills", one.kills}});
  }
  return Json{{"schema", 1},
              {"generator", manifest.generator},
              {"options", manifest.options},
              {"cases", cases},
              {"alive", manifest.alive},
              {"equivalent", manifest.equivalent},
              {"same", manifest.same},
              {"alive_without_affine", manifest.alive_without_affine}}
             .dump(1) +
         '\n';
}

std::string manifest_path(const std::string& inputs) {
  const std::filesystem::path path(inputs);
  if (is_manifest_folder(inputs)) return (path / "manifest.json").string();
  return std::filesystem::path(path).replace_extension(".manifest.json").string();
}

std::optional<std::string> inputs_of_manifest(const std::string& path) {
  constexpr std::string_view kName = "manifest.json";
  if (!path.ends_with(kName)) return {};
  std::vector<std::string> candidates;
  const std::string before = path.substr(0, path.size() - kName.size());
  if (before.ends_with('/')) candidates.push_back(before);
  if (before.empty()) candidates.emplace_back(".");
  if (before.ends_with('.'))
    candidates.insert(candidates.end(), {before + "npz", before + "safetensors"});
  std::error_code ignored;
  const auto found =
      std::find_if(candidates.begin(), candidates.end(),
                   [&](const std::string& one) { return std::filesystem::exists(one, ignored); });
  return found == candidates.end() || !std::filesystem::exists(path, ignored)
             ? std::nullopt
             : std::optional(*found);
}

void check_replaced_manifest(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return;
  try {
    ManifestReader(path, "").parsed();
  } catch (const SystemError&) {
    throw;
  } catch (const Error& error) {
    throw Error(concat(error.what(), ", and would be replaced"), "another -o leaves it alone");
  }
}

std::optional<Manifest> read_manifest(const std::string& inputs) {
  std::error_code ignored;
  const std::string path = manifest_path(inputs);
  if (!std::filesystem::exists(inputs, ignored) ||
      !std::filesystem::is_regular_file(path, ignored)) {
    return {};
  }
  return ManifestReader(path, inputs).read();
}

}  // namespace lnorm
