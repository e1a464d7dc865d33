#include <sstream>
#include <string_view>

#include "generate/description.hpp"
#include "lnorm/core/text.hpp"

namespace lnorm::app {

namespace {

// Text of a line: a backslash and a hyphen stand for themselves, and no first character makes it a request.
std::string roff(std::string_view text) {
  std::string result;
  if (text.starts_with('.') || text.starts_with('\'')) result = "\\&";
  for (const char c : text) {
    if (c == '\\') {
      result += "\\e";
    } else if (c == '-') {
      result += "\\-";
    } else if (c == '\'') {
      result += "\\(aq";
    } else {
      result += c;
    }
  }
  return result;
}

// The summary of a manual page begins in lower case.
std::string lower_first(std::string text) {
  if (!text.empty() && text[0] >= 'A' && text[0] <= 'Z') {
    text[0] = static_cast<char>(text[0] - 'A' + 'a');
  }
  return text;
}

std::string upper(std::string text) {
  for (char& c : text) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return text;
}

std::string title(const std::string& page) {
  return concat(".TH ", roff(upper(page)), " 1 ", LNORM_RELEASE_DATE, " \"lnorm ", LNORM_VERSION,
                "\" \"User Commands\"\n");
}

// What a footer of the help says, by the sections of a manual page.
struct Footer {
  std::string text;
  std::string examples;
  std::string exit_status;
};

Footer read_footer(const std::string& footer) {
  constexpr std::string_view kExitStatus = "Exit status: ";
  Footer sections;
  std::string* section = &sections.text;
  bool new_paragraph = false;
  std::istringstream lines(footer);
  for (std::string line; std::getline(lines, line);) {
    if (line == "Examples:") {
      section = &sections.examples;
    } else if (line.starts_with(kExitStatus)) {
      section = &sections.exit_status;
      *section += roff(line.substr(kExitStatus.size())) + "\n";
    } else if (line.empty()) {
      section = &sections.text;
      new_paragraph = true;
    } else if (section == &sections.examples) {
      *section += roff(line.starts_with("  ") ? line.substr(2) : line) + "\n";
    } else {
      if (new_paragraph && !section->empty()) *section += ".PP\n";
      *section += roff(line) + "\n";
      new_paragraph = false;
    }
  }
  return sections;
}

std::string section(const std::string& name, const std::string& text) {
  return text.empty() ? "" : concat(".SH ", name, "\n", text);
}

std::string examples_section(const std::string& examples) {
  return examples.empty() ? "" : section("EXAMPLES", concat(".nf\n", examples, ".fi\n"));
}

std::string options_of(const CommandDescription& command) {
  std::string text;
  std::string group;
  for (const OptionDescription& option : command.options) {
    if (option.group != group) {
      group = option.group;
      text += concat(".SS ", roff(group), "\n");
    }
    text += ".TP\n";
    text += joined(option.names, ", ",
                   [](const std::string& name) { return concat("\\fB", roff(name), "\\fR"); });
    if (!option.type.empty()) {
      text += option.choices().empty() ? concat(" \\fI", roff(option.type), "\\fR")
                                       : concat(" ", roff(option.type));
    }
    text += concat("\n", roff(option.help), "\n");
  }
  return text;
}

constexpr std::string_view kEnvironment =
    ".TP\n.B NO_COLOR\nNo colors, unless \\fB\\-\\-color\\fR always says so.\n"
    ".TP\n.B TMPDIR\nThe folder of temporary files (default /tmp).\n";

}  // namespace

std::string manual_of(const ProgramDescription& program) {
  const Footer footer = read_footer(program.program.footer);
  std::string commands;
  std::string see_also;
  for (const CommandDescription& command : program.commands) {
    commands += concat(".TP\n.BR lnorm\\-", roff(command.name), " (1)\n", roff(command.help), "\n");
    see_also += concat(see_also.empty() ? "" : " ,\n", ".BR lnorm\\-", roff(command.name), " (1)");
  }
  std::string summary = program.program.help;
  while (summary.ends_with('\n') || summary.ends_with('.')) summary.pop_back();
  if (summary.starts_with("lnorm ")) summary.erase(0, 6);
  return title("lnorm") + section("NAME", "lnorm \\- " + roff(summary) + "\n") +
         section("SYNOPSIS", roff(program.program.usage) + "\n") +
         section("DESCRIPTION", footer.text) + section("COMMANDS", commands) +
         section("OPTIONS", options_of(program.program)) +
         section("ENVIRONMENT", std::string(kEnvironment)) +
         section("EXIT STATUS", footer.exit_status) + examples_section(footer.examples) +
         section("SEE ALSO", see_also + "\n");
}

std::string manual_of(const CommandDescription& command) {
  const Footer footer = read_footer(command.footer);
  const std::string page = "lnorm-" + command.name;
  return title(page) +
         section("NAME", concat(roff(page), " \\- ", roff(lower_first(command.help)), "\n")) +
         section("SYNOPSIS", roff(command.usage) + "\n") + section("DESCRIPTION", footer.text) +
         section("OPTIONS", options_of(command)) +
         section("ENVIRONMENT", std::string(kEnvironment)) +
         section("EXIT STATUS", footer.exit_status) + examples_section(footer.examples) +
         section("SEE ALSO", ".BR lnorm (1)\n");
}

}  // namespace lnorm::app
