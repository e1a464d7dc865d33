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
    ".TP\n.B COLUMNS\nThe width of reports on a terminal.\n"
    ".TP\n.B NO_COLOR\nNo colors, unless \\fB\\-\\-color\\fR always says so.\n"
    ".TP\n.B TMPDIR\nThe folder of temporary files (default /tmp).\n";

// of: whose options and footer the page has. summary: in roff, as commands and see_also.
std::string page_of(const CommandDescription& of, const std::string& page,
                    const std::string& summary, const std::string& commands,
                    const std::string& see_also) {
  const Footer footer = read_footer(of.footer);
  return title(page) + section("NAME", concat(roff(page), " \\- ", summary, "\n")) +
         section("SYNOPSIS", roff(of.usage) + "\n") + section("DESCRIPTION", footer.text) +
         section("COMMANDS", commands) + section("OPTIONS", options_of(of)) +
         section("ENVIRONMENT", std::string(kEnvironment)) +
         section("EXIT STATUS", footer.exit_status) + examples_section(footer.examples) +
         section("SEE ALSO", see_also + "\n");
}

}  // namespace

std::string manual_of(const ProgramDescription& program) {
  std::string commands;
  for (const CommandDescription& command : program.commands) {
    commands += concat(".TP\n.BR lnorm\\-", roff(command.name), " (1)\n", roff(command.help), "\n");
  }
  const std::string see_also =
      joined(program.commands, " ,\n", [](const CommandDescription& command) {
        return concat(".BR lnorm\\-", roff(command.name), " (1)");
      });
  std::string summary = program.program.help;
  while (summary.ends_with('\n') || summary.ends_with('.')) summary.pop_back();
  if (summary.starts_with("lnorm ")) summary.erase(0, 6);
  return page_of(program.program, "lnorm", roff(summary), commands, see_also);
}

std::string manual_of(const CommandDescription& command) {
  return page_of(command, "lnorm-" + command.name, roff(lower_first(command.help)), "",
                 ".BR lnorm (1)");
}

}  // namespace lnorm::app
