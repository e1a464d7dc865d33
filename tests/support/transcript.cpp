#include "support/transcript.hpp"

#include <cstdlib>
#include <regex>
#include <sstream>

#include "support/commands.hpp"
#include "support/markdown.hpp"
#include "support/pace.hpp"

namespace support {

namespace {

// A command that is refused, with status 2, must leave the folder's entries as they were, hidden ones too.
constexpr const char* kFunctions = R"script(exec 2>&1
entries() { echo .[!.]* *; }
end() {
  [ "$1" != 2 ] || [ "$(entries)" = "$before" ] || echo "left behind: $(entries)"
  printf '\036%d\n' "$1"
}
)script";

bool is_status(const std::string& line) {
  return line.size() > 2 && line.front() == '[' && line.back() == ']' &&
         line.find_first_not_of("0123456789", 1) == line.size() - 1;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
  return text;
}

// The check of an example with a cause's options: "--eps 1e-3 without --weight". Empty if the example is no check.
std::string with_options(const std::string& command, const std::string& options) {
  std::smatch check;
  if (!std::regex_search(command, check, std::regex("lnorm check [^;|]*"))) return "";
  std::string result = check.str();
  std::string given = options;
  static const std::regex without("without (--[a-z-]+) ?");
  for (std::smatch match; std::regex_search(given, match, without);) {
    result = std::regex_replace(result, std::regex(match.str(1) + "( [^- ][^ ]*)?"), "");
    given = match.prefix().str() + match.suffix().str();
  }
  return result + " " + given;
}

// Runs what an output says that one can run, as it stands: the command of details, the help of a hint, and a check with
// the options of its cause, which then finds no difference.
std::string script_of_advice(const Example& example) {
  std::string script;
  std::istringstream lines(example.prints);
  static const std::regex advice(
      "details: (lnorm .*)|hint: (?:here it is )?(lnorm( [a-z]+)? --(help|version)).*");
  static const std::regex cause("cause: .* \\([^ ]+; (.*)\\): every element");
  for (std::string line; std::getline(lines, line);) {
    std::smatch match;
    std::string command;
    std::string most = "1";
    if (std::regex_match(line, match, advice)) {
      command = match.str(1) + match.str(2);
    } else if (std::regex_match(line, match, cause)) {
      command = with_options(example.command, match.str(1));
      most = "0";
    }
    if (command.empty()) continue;
    script += "(" + command + ") > /dev/null 2>&1 < /dev/null; [ $? -le " + most +
              " ] || echo 'what this says does not run'\n";
  }
  return script;
}

std::string script_of(const std::vector<Example>& examples, Kind kind) {
  std::string script = kFunctions;
  if (kind == Kind::transcript) {
    script += kFindLnorm + "\nmkdir start; cd start; ln -s ../data data; sections=0\n";
  }
  for (const Example& example : examples) {
    if (kind == Kind::transcript && example.begins_section) {
      script += "cd ..; sections=$((sections + 1)); cp -R start $sections; cd $sections\n";
    }
    script += "before=$(entries)\n" + replaced(example.command, "/tmp/", "tmp//") +
              "\nstatus=$?\n" + replaced(script_of_advice(example), "/tmp/", "tmp//") +
              "end $status\n";
  }
  return script;
}

std::vector<Example> run_in_shell(const std::vector<Example>& wanted, Kind kind) {
  const Workplace project;
  std::filesystem::create_directories(project / "build/release");
  std::filesystem::create_directory(project / "tmp");
  std::filesystem::create_symlink(LNORM_BINARY, project / "build/release/lnorm");
  std::filesystem::create_directory_symlink(LNORM_DATA_DIR, project / "data");

  const Outcome outcome = run({.arguments = {"-c", script_of(wanted, kind)},
                               .directory = project.path().string(),
                               .environment = {{"LC_ALL", "C.UTF-8"}, {"PATH", "/usr/bin:/bin"}},
                               .seconds = 600,
                               .program = "/bin/sh"});
  std::vector<Example> printed;
  std::size_t at = 0;
  for (const Example& example : wanted) {
    const std::size_t end = outcome.out.find('\036', at);
    if (end == std::string::npos) break;
    printed.push_back({example.command,
                       replaced(outcome.out.substr(at, end - at), "tmp//", "/tmp/"),
                       std::stoi(outcome.out.substr(end + 1))});
    at = outcome.out.find('\n', end) + 1;
  }
  return printed;
}

std::string rewritten(const std::string& markdown, const std::vector<Example>& printed) {
  std::string text;
  std::size_t next = 0;
  for_each_line(
      markdown, "console",
      [&](const std::string& line) {
        if (!line.starts_with("$ ")) return;
        const Example& example = printed.at(next++);
        text += line + "\n" + example.prints;
        if (example.status != 0) text += "[" + std::to_string(example.status) + "]\n";
      },
      [&](const std::string& line) { text += line + "\n"; });
  return text;
}

}  // namespace

std::vector<Example> examples_of(const std::string& markdown) {
  std::vector<Example> found;
  bool begins_section = false;
  for_each_line(
      markdown, "console",
      [&](const std::string& line) {
        if (line.starts_with("$ ")) {
          found.push_back({line.substr(2), "", 0, std::exchange(begins_section, false)});
        } else if (found.empty()) {
          FAIL("found '" << line << "' before the first command");
        } else if (is_status(line)) {
          found.back().status = std::stoi(line.substr(1));
        } else {
          found.back().prints += line + '\n';
        }
      },
      [&](const std::string& line) { begins_section |= line.starts_with("## "); });
  return found;
}

std::size_t check_examples(const std::filesystem::path& file, Kind kind) {
  CAPTURE(file.string());
  const std::string markdown = read_file(file);
  std::vector<Example> wanted = examples_of(markdown);
  if (kind == Kind::transcript) {
    std::erase_if(wanted, [section = 0](const Example& example) mutable {
      if (example.begins_section) ++section;
      return section > 0 && !takes(section);
    });
  }
  const bool has_setup = !wanted.empty() && wanted.front().command == kFindLnorm;
  if (kind == Kind::document && !has_setup) wanted.insert(wanted.begin(), {kFindLnorm, ""});
  std::vector<Example> printed = run_in_shell(wanted, kind);
  for (std::size_t i = 0; i < printed.size(); ++i) {
    CAPTURE(wanted[i].command);
    if (printed[i].status == 2) {
      Outcome refusal;
      refusal.status = 2;
      refusal.err = printed[i].prints;
      CHECK(refusal_fault(refusal, {}) == "");
    }
    if (std::getenv("LNORM_ACCEPT")) continue;
    CHECK(printed[i].prints == wanted[i].prints);
    CHECK(printed[i].status == wanted[i].status);
  }
  REQUIRE(printed.size() == wanted.size());
  if (std::getenv("LNORM_ACCEPT")) {
    if (kind == Kind::document && !has_setup) printed.erase(printed.begin());
    write_file(file, rewritten(markdown, printed));
  }
  return wanted.size();
}

}  // namespace support
