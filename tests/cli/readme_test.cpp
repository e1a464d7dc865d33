#include <regex>

#include "support/commands.hpp"
#include "support/markdown.hpp"

// README and docs/ say what the program does: every command of a ```console block is run, in order, and prints what
// stands below it. ```sh blocks install and build; they are not run.

namespace {

using namespace support;

struct Example {
  std::string command;
  std::string prints;  // standard output and error, as a terminal shows them
};

std::vector<Example> examples(const std::string& markdown) {
  std::vector<Example> found;
  for (const Words& block : blocks(markdown, "console")) {
    CAPTURE(block);
    REQUIRE((!block.empty() && block.front().starts_with("$ ")));
    for (const std::string& line : block) {
      if (line.starts_with("$ ")) {
        found.push_back({line.substr(2), ""});
      } else {
        found.back().prints += line + '\n';
      }
    }
  }
  return found;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
  return text;
}

// What one shell prints for the commands, one after another, and the status that each of them ends with. It runs in a
// folder laid out like the project's, with this build's program where README expects one. In place of /tmp/ stands
// a folder in there, by a name of the same length, since tables fit a width.
std::vector<Example> run_in_shell(const std::vector<Example>& wanted, std::vector<int>& statuses) {
  const Workplace project;
  std::filesystem::create_directories(project / "build/release");
  std::filesystem::create_directory(project / "tmp");
  std::filesystem::create_symlink(LNORM_BINARY, project / "build/release/lnorm");
  std::filesystem::create_directory_symlink(LNORM_DATA_DIR, project / "data");

  std::string script = "exec 2>&1\n";
  for (const Example& example : wanted) {
    script += replaced(example.command, "/tmp/", "tmp//") + "\nprintf '\\036%d\\n' $?\n";
  }
  const Outcome outcome = run({.arguments = {"-c", script},
                               .directory = project.path().string(),
                               .environment = {{"LC_ALL", "C.UTF-8"}, {"PATH", "/usr/bin:/bin"}},
                               .program = "/bin/sh"});
  std::vector<Example> printed;
  std::size_t at = 0;
  for (const Example& example : wanted) {
    const std::size_t end = outcome.out.find('\036', at);
    if (end == std::string::npos) break;
    printed.push_back(
        {example.command, replaced(outcome.out.substr(at, end - at), "tmp//", "/tmp/")});
    statuses.push_back(std::stoi(outcome.out.substr(end + 1)));
    at = outcome.out.find('\n', end) + 1;
  }
  return printed;
}

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

TEST_CASE("every command of README and docs prints what stands below it", "[cli]") {
  const Example setup{R"(export PATH="$PWD/build/release:$PATH")", ""};
  std::size_t tried = 0;
  for (const std::string& document : documents()) {
    CAPTURE(document);
    std::vector<Example> wanted = examples(text_of(document));
    // README says how lnorm is found, docs/ takes that for granted.
    if (document == "README.md") {
      REQUIRE(wanted.size() >= 10);
      CHECK(wanted.front().command == setup.command);
    } else {
      wanted.insert(wanted.begin(), setup);
    }
    std::vector<int> statuses;
    const std::vector<Example> printed = run_in_shell(wanted, statuses);
    for (std::size_t i = 0; i < printed.size(); ++i) {
      CAPTURE(wanted[i].command);
      CHECK(printed[i].prints == wanted[i].prints);
      CHECK(statuses[i] == 0);  // another one is shown: "; echo $?"
    }
    CHECK(printed.size() == wanted.size());
    tried += wanted.size();
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
