#include <regex>

#include "support/commands.hpp"
#include "support/markdown.hpp"
#include "support/transcript.hpp"

// README and docs/ say what the program does: every command of a ```console block is run, in order, and prints what
// stands below it. ```sh blocks install and build; they are not run.

namespace {

using namespace support;

// README first, then docs/.
Words documents() {
  Words found{"README.md"};
  for (const std::string& name : list_directory(LNORM_SOURCE_DIR "/docs")) {
    if (name.ends_with(".md")) found.push_back("docs/" + name);
  }
  return found;
}

std::string text_of(const std::string& document) {
  return read_file(std::filesystem::path(LNORM_SOURCE_DIR) / document);
}

}  // namespace

TEST_CASE("every command of README and docs prints what stands below it", "[cli][many]") {
  const std::vector<Example> of_readme = examples_of(text_of("README.md"));
  REQUIRE(of_readme.size() >= 5);
  CHECK(of_readme.front().command == kFindLnorm);
  std::size_t tried = 0;
  for (const std::string& document : documents()) {
    tried += check_examples(std::filesystem::path(LNORM_SOURCE_DIR) / document, Kind::document);
  }
  CHECK(tried >= 30);
}

TEST_CASE("README and docs show no command that is not run", "[cli]") {
  for (const std::string& document : documents()) {
    CAPTURE(document);
    const std::string text = text_of(document);
    for (const std::string& line : lines_of(text)) {
      CAPTURE(line);
      CHECK(!line.starts_with("    $ "));
      CHECK(!line.starts_with("    lnorm "));
    }
    for (const Words& block : blocks(text, "sh")) {
      for (const std::string& line : block) {
        CAPTURE(line);
        CHECK(!line.starts_with("$ "));
        CHECK(!line.starts_with("lnorm "));
      }
    }
  }
}

TEST_CASE("what README and docs link to is there", "[cli]") {
  const std::regex link(R"(\]\(([^)#:]+)(#[^)]*)?\))");
  for (const std::string& document : documents()) {
    const std::string text = text_of(document);
    const std::filesystem::path folder =
        (std::filesystem::path(LNORM_SOURCE_DIR) / document).parent_path();
    for (std::sregex_iterator at(text.begin(), text.end(), link), end; at != end; ++at) {
      const std::string target = (*at)[1];
      CAPTURE(document, target);
      CHECK(std::filesystem::exists(folder / target));
    }
  }
}
