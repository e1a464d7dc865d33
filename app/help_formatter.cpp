#include "help_formatter.hpp"

#include <sstream>
#include <string_view>

namespace lnorm::app {

namespace {

constexpr std::size_t kWidth = 80;
constexpr std::size_t kColumn = 30;  // where descriptions begin

// A name, and beside it what it means.
std::string entry(const std::string& name, const std::string& meaning) {
  std::string text = "  " + name;
  std::size_t column = text.size();
  if (column + 1 > kColumn) {
    text += '\n';
    column = 0;
  }
  text.append(kColumn - column, ' ');
  column = kColumn;
  std::istringstream words(meaning);
  for (std::string word; words >> word;) {
    if (column > kColumn && column + 1 + word.size() > kWidth) {
      text += '\n' + std::string(kColumn, ' ');
      column = kColumn;
    }
    if (column > kColumn) word.insert(0, " ");
    text += word;
    column += word.size();
  }
  return text + '\n';
}

}  // namespace

std::string HelpFormatter::make_usage(const CLI::App* app, std::string) const {
  const CLI::App* const program = app->get_parent();
  const std::string usage =
      "Usage: " + launcher_ + (program == nullptr ? app : program)->get_name() + ' ';
  if (program == nullptr) return usage + "[COMMAND] [INPUT...] [OPTIONS]\n";
  const std::string& command = app->get_name();
  if (command == "compare") return usage + "compare ACTUAL EXPECTED [OPTIONS]\n";
  if (command == "apply") return usage + "[apply] [INPUT...] [OPTIONS]\n";
  return usage + command + " [INPUT...] [OPTIONS]\n";
}

std::string HelpFormatter::make_option(const CLI::Option* option, bool is_positional) const {
  return entry(make_option_name(option, is_positional) + make_option_opts(option),
               make_option_desc(option));
}

std::string HelpFormatter::make_subcommand(const CLI::App* command) const {
  return entry(command->get_name(), command->get_description());
}

}  // namespace lnorm::app
