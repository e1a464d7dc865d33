#include <cstdlib>
#include <regex>
#include <set>
#include <sstream>

#include "support/catch.hpp"
#include "support/files.hpp"

// docs/architecture.md says which files a change of each kind touches: those that mention an example of what is there.
//   **A dtype** (as `float8_e5m2`): `lib/lnorm/core/dtype.hpp`, ...

namespace {

namespace fs = std::filesystem;

const fs::path kRoot = LNORM_SOURCE_DIR;

struct ChangePath {
  std::string name;
  std::string example;
  std::set<std::string> files;
};

std::vector<ChangePath> read_change_paths() {
  std::istringstream lines(support::read_file((kRoot / "docs/architecture.md").string()));
  const std::regex start(R"(\*\*(An? [a-z ]+)\*\* \(as `([^`]+)`\).*)");
  const std::regex file("`((?:app|lib)/[^`]+)`");
  std::vector<ChangePath> paths;
  bool is_within = false;
  for (std::string line; std::getline(lines, line);) {
    std::smatch match;
    if (std::regex_match(line, match, start)) {
      paths.push_back({match[1], match[2], {}});
      is_within = true;
    }
    if (line.empty()) is_within = false;
    if (!is_within) continue;
    for (std::sregex_iterator at(line.begin(), line.end(), file), end; at != end; ++at) {
      paths.back().files.insert((*at)[1]);
    }
  }
  return paths;
}

// By grep: std::regex takes seconds.
std::set<std::string> files_that_mention(const std::string& example) {
  const support::TempDir at;
  const std::string command = "cd '" + kRoot.string() + "' && grep -rlE --include='*.[ch]pp' '\\b" +
                              example + "\\b' app lib > '" + (at / "found") + "'";
  REQUIRE(std::system(command.c_str()) == 0);
  std::istringstream lines(support::read_file(at / "found"));
  std::set<std::string> files;
  for (std::string line; std::getline(lines, line);) files.insert(line);
  return files;
}

}  // namespace

TEST_CASE("the documents name the files that a change touches") {
  const auto paths = read_change_paths();
  REQUIRE(paths.size() == 8);
  for (const ChangePath& path : paths) {
    CAPTURE(path.name, path.example);
    CHECK(path.files == files_that_mention(path.example));
    CHECK(path.files.size() <= 10);
  }
}
