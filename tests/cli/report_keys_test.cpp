#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "support/commands.hpp"
#include "support/json.hpp"

// docs/reports.md lists the keys of reports in tables. Above a table stands which commands make such a report:
//   <!-- keys of tensors[] but schema, tensors[]: stats data/gpt2/dump.pt; stats data/gpt2/dump.npz -->
// The table has all of their keys, and no others: each in the first column, or in the words beside the object that it is in.

namespace {

using namespace support;
using nlohmann::json;
using Keys = std::set<std::string>;

struct KeyTable {
  Words commands;
  std::string of;  // the part of the report whose keys they are
  Keys left_out = {};
  std::vector<std::pair<Words, std::string>> rows = {};  // keys, and their words
};

Words quoted(const std::string& text) {
  const std::regex code("`([^`]+)`");
  Words found;
  for (std::sregex_iterator at(text.begin(), text.end(), code), end; at != end; ++at) {
    found.push_back((*at)[1]);
  }
  return found;
}

Words words_of(const std::string& text, const std::string& separators) {
  const std::regex separator(separators);
  return {std::sregex_token_iterator(text.begin(), text.end(), separator, -1), {}};
}

const std::regex kMarker(R"(<!-- keys(?: of (\S+))?(?: but ([^:]+))?: (.*) -->)");

std::vector<KeyTable> tables_of(const std::string& document) {
  std::vector<KeyTable> tables;
  bool is_inside = false;
  for (const std::string& line : lines_of(document)) {
    std::smatch match;
    if (std::regex_match(line, match, kMarker)) {
      is_inside = true;
      tables.push_back({.commands = words_of(match[3], "; "), .of = match[1]});
      for (const std::string& key : words_of(match[2], ", ")) tables.back().left_out.insert(key);
    } else if (is_inside && line.starts_with("| `")) {
      const std::size_t end = line.find(" | ", 2);
      Words keys = quoted(line.substr(0, end));
      for (std::string& key : keys) {
        key = std::regex_replace(key, std::regex(R"(\[0\])"), "[]");
        // ".index" after "rows[].row" is "rows[].index".
        const std::string& first = keys.front();
        if (key.front() == '.') key = first.substr(0, first.rfind('.')) + key;
      }
      tables.back().rows.emplace_back(keys, line.substr(end));
    } else if (!line.starts_with("|")) {
      is_inside = false;
    }
  }
  return tables;
}

// Of objects in objects and in lists.
void add_keys(const json& value, const std::string& prefix, Keys& keys) {
  if (value.is_array()) {
    for (const json& item : value) add_keys(item, prefix + "[]", keys);
  }
  if (!value.is_object()) return;
  for (const auto& [key, part] : value.items()) {
    const std::string path = prefix.empty() ? key : prefix + "." + key;
    keys.insert(path);
    add_keys(part, path, keys);
  }
}

json report_of(const std::string& command) {
  Words arguments = words_of(command, " ");
  arguments.emplace_back("--json");
  const Outcome outcome = run({.arguments = arguments, .directory = LNORM_SOURCE_DIR});
  REQUIRE(outcome.err.empty());
  return support::parsed_json(outcome.out);
}

bool says(const std::string& words, const std::string& key) {
  static std::map<std::string, Words>
      codes;  // of words: finding them takes longer than the reports
  const auto [known, is_new] = codes.try_emplace(words);
  if (is_new) {
    for (const std::string& code : quoted(words)) known->second += words_of(code, R"([^A-Za-z_]+)");
  }
  return std::ranges::find(known->second, key) != known->second.end();
}

bool is_within(const std::string& key, const std::string& object) {
  return key.starts_with(object) && (key[object.size()] == '.' || key[object.size()] == '[');
}

// Whether a row has the key or what is in it, or the words of one that has an object around it; they may point elsewhere.
bool is_documented(const KeyTable& table, const std::string& key) {
  for (const std::string& object : table.left_out) {
    if (key == object || is_within(key, object)) return true;
  }
  for (const auto& [keys, words] : table.rows) {
    const bool are_said =
        says(words, key.substr(key.rfind('.') + 1)) || words.find("](#") != words.npos;
    for (const std::string& own : keys) {
      if (key == own || is_within(own, key) || (are_said && is_within(key, own))) return true;
    }
  }
  return false;
}

const std::string kDocument =
    read_file(std::filesystem::path(LNORM_SOURCE_DIR) / "docs/reports.md");

}  // namespace

TEST_CASE("the tables of docs/reports.md have the keys of reports", "[reports]") {
  const std::vector<KeyTable> tables = tables_of(kDocument);
  CHECK(tables.size() >= 7);
  for (const KeyTable& table : tables) {
    CAPTURE(table.commands);
    Keys keys;
    for (const std::string& command : table.commands) {
      Keys all;
      add_keys(report_of(command), "", all);
      for (const std::string& key : all) {
        const std::string prefix = table.of + ".";
        if (table.of.empty()) {
          keys.insert(key);
        } else if (key.starts_with(prefix)) {
          keys.insert(key.substr(prefix.size()));
        }
      }
    }
    for (const std::string& key : keys) {
      CAPTURE(key);
      CHECK(is_documented(table, key));
    }
    for (const auto& [documented, words] : table.rows) {
      for (const std::string& key : documented) {
        CAPTURE(key);
        CHECK(keys.contains(key));
      }
    }
  }
}
