#include "arguments.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <iostream>
#include <span>
#include <sstream>
#include <utility>
#include <vector>

#include "check_given.hpp"
#include "commands.hpp"
#include "generate/description.hpp"
#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/io/os.hpp"
#include "lnorm/kernel/layer_norm.hpp"
#include "lnorm/pipeline/executor.hpp"
#include "options.hpp"
#include "terminal.hpp"

namespace lnorm::app {

namespace {

// What --help describes; --help all describes all options.
constexpr std::string_view kMainOptions =
    " --atol --axes --bias --dtype --dx --dy --eps --json --kernels --output --rms --row "
    "--rtol --seed --softmax --to --top --weight ";

constexpr std::size_t kWidth = 80;
constexpr std::size_t kColumn = 30;  // where descriptions begin

// A name, and beside it what it means.
std::string entry(const std::string& name, const std::string& meaning) {
  std::string text = "  " + name;
  if (text.size() > kWidth) text.insert(text.rfind('|', kWidth - 1) + 1, "\n      ");
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

// Help as CLI11 prints it, but no line is longer than 80 characters, and the options that few need are named alone.
class HelpFormatter final : public CLI::Formatter {
 public:
  // describes_all: options.
  HelpFormatter(const Program& program, bool describes_all)
      : program_(program), describes_all_(describes_all) {}

  std::string make_usage(const CLI::App* app, std::string) const override {
    const bool is_command = app->get_parent() != nullptr;
    return concat("Usage: ", program_.usage(is_command ? find_command(app->get_name()) : nullptr),
                  '\n');
  }

  std::string make_group(std::string group, bool is_positional,
                         std::vector<const CLI::Option*> options) const override {
    if (describes_all_) {
      return CLI::Formatter::make_group(std::move(group), is_positional, std::move(options));
    }
    if (is_positional) return "";  // the usage has them
    std::string described;
    std::vector<std::string> others;
    for (const CLI::Option* const option : options) {
      const auto is_main = [](const std::string& one) {
        return kMainOptions.find(concat(" --", one, ' ')) != kMainOptions.npos;
      };
      if (std::any_of(option->get_lnames().begin(), option->get_lnames().end(), is_main)) {
        // The first clause says what it is.
        const std::string meaning = make_option_desc(option);
        described += entry(make_option_name(option, false) + make_option_opts(option),
                           meaning.substr(0, std::min(meaning.find("; "), meaning.find(" ("))));
      } else {
        others.push_back(concat(" --", option->get_lnames().front()));
      }
    }
    if (options.size() == 1 && described.empty()) return "";  // the group of --help
    std::string line = described.empty() ? group + ":" : "  also";
    std::string text = described.empty() ? "" : group + ":\n" + described;
    for (const std::string& name : others) {
      if (line.size() + name.size() > kWidth) {
        text += line + '\n';
        line = "      ";
      }
      line += name;
    }
    return others.empty() ? text : text + line + '\n';
  }

  std::string make_footer(const CLI::App* app) const override {
    std::string footer = CLI::Formatter::make_footer(app);
    if (describes_all_ || app->get_parent() == nullptr) return footer;
    const std::size_t examples = footer.find("Examples:");
    return concat(footer.substr(examples == footer.npos ? 0 : examples), program_.launcher,
                  program_.name, ' ', app->get_name(), " --help all describes all options.\n");
  }

  std::string make_option(const CLI::Option* option, bool is_positional) const override {
    return entry(make_option_name(option, is_positional) + make_option_opts(option),
                 make_option_desc(option));
  }

  std::string make_subcommand(const CLI::App* command) const override {
    return entry(command->get_name(), command->get_description());
  }

 private:
  const Program& program_;
  bool describes_all_;
};

using Words = std::span<const char* const>;

using Take = std::function<void(const std::string& text)>;

CLI::Option* add_flag(CLI::App& app, const Option& option, Take take) {
  return app
      .add_flag_callback(
          std::string(option.names), [take = std::move(take)] { take(""); },
          std::string(option.help))
      ->disable_flag_override();  // --json=false and the like
}

CLI::Option* add_valued(CLI::App& app, const Option& option, Take take) {
  const auto take_all = [&option, take = std::move(take)](const std::vector<std::string>& texts) {
    if (texts.size() > 1 && !option.repeats) {
      const std::size_t comma = option.names.find(',');
      const std::string others =
          comma == option.names.npos ? "" : concat(" (or ", option.names.substr(comma + 1), ")");
      throw Error(concat(option.name(), others, " is given twice, expected once"));
    }
    for (const std::string& text : texts) take(text);
    return true;
  };
  return app.add_option(std::string(option.names), take_all, std::string(option.help))
      ->type_name(option.value_text())
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

// A command line while CLI11 reads it.
struct CommandLine {
  CLI::App app;
  CLI::App* command = nullptr;  // the one that is run
  Arguments arguments;
};

bool asks_for_help(std::string_view word) { return word == "--help" || word == "-h"; }

// Whether the command line may have the option of these names: "-o,--output". There may be several of one letter in a word.
bool may_have(Words argv, std::string_view names) {
  return std::ranges::any_of(argv, [&](std::string_view word) {
    if (!word.starts_with('-')) return false;
    return std::ranges::any_of(split(names, ','), [&](std::string_view name) {
      if (name.starts_with("--")) return word.starts_with(name);
      return !word.starts_with("--") && word.find(name[1]) != word.npos;
    });
  });
}

void add_options(CLI::App& app, const CommandRow& row, Words argv, bool shows_all,
                 CommandLine& line) {
  for (const Option& option : all_options()) {
    if ((option.commands & row.command) == 0 || option.set == nullptr) continue;
    if (!shows_all && !may_have(argv, option.names)) continue;
    const auto take = [&](const std::string& text) { line.arguments.take(option, text); };
    CLI::Option* const added =
        option.is_flag() ? add_flag(app, option, take) : add_valued(app, option, take);
    added->group(std::string(option.group.empty() ? row.puts_out : option.group));
  }
}

CLI::App& add_command(const CommandRow& row, CommandLine& line) {
  const bool two = row.command == kCompare || row.command == kCheck;
  CLI::App& app = *line.app.add_subcommand(std::string(row.name), std::string(row.help));
  app.group("Commands");
  app.add_option(
         row.command == kCompare ? "ACTUAL" : "INPUT", line.arguments.words,
         two ? "Two tensors" : "Tensors: files, FILE:NAME or JSON; standard input if not given")
      // Printed behind the name.
      ->type_name(row.command == kCompare ? "EXPECTED"
                  : two                   ? "OUTPUT"
                                          : "")
      ->group(row.command == kInputs ? "" : "Positionals")
      ->expected(1, 1'000'000)
      ->allow_extra_args(false);  // or CLI11 takes "[a,b]" apart
  app.allow_extras();
  app.footer(std::string(row.examples));
  app.get_help_ptr()->disable_flag_override();
  return app;
}

std::string version(const Program& program) {
  return concat(program.name, " " LNORM_VERSION "\nkernel ", backends().front().name,
                ", the best of this machine\nbuilt with " LNORM_LIBRARIES);
}

void set_up(CommandLine& line, const Program& program, Words argv, bool describes_all) {
  line.app.description(program.overview);
  line.app.name(program.name);
  line.app.set_version_flag("-V,--version", [&program] { return version(program); });
  line.app.footer(program.footer());
  line.app.require_subcommand(1);
  line.app.allow_extras();
  line.app.formatter(std::make_shared<HelpFormatter>(program, describes_all));
  // CLI11 takes as long to set up all commands and options as the work on a small tensor takes.
  const bool shows_all = argv.empty() || may_have(argv, "-h,--help");
  for (const CommandRow& row : all_commands()) {
    const bool is_run = row.command == line.arguments.command;
    if (!is_run && !shows_all) continue;
    CLI::App& command = add_command(row, line);
    if (!is_run) continue;
    line.command = &command;
    add_options(command, row, argv, shows_all, line);
  }
}

// Adds what CLI11 could not place to the words, in the order of the command line: "-:member", which
// it takes for an option. What remains are options that are not there.
void place_extras(CommandLine& line, Words argv) {
  const auto position = [&](const std::string& word) {
    return std::find(argv.begin(), argv.end(), word) - argv.begin();
  };
  std::vector<std::string>& words = line.arguments.words;
  for (const std::string& word : line.app.remaining(true)) {
    if (word == "--") continue;
    if (word.starts_with('-') && word.size() > 1 && !word.starts_with("-:") &&
        position(word) < position("--")) {
      fail_option(line.arguments.command, word);
    }
    words.push_back(word);
  }
  std::stable_sort(words.begin(), words.end(), [&](const std::string& a, const std::string& b) {
    return position(a) < position(b);
  });
}

void refuse_repeated_flags(const CLI::App& command) {
  for (const CLI::Option* const flag : command.get_options()) {
    if (flag->get_expected_max() == 0 && flag->count() > 1) {
      throw Error(concat(flag->get_name(), " is given twice, expected once"));
    }
  }
}

// Prints what help asks for; returns the exit status.
int print_help(const CLI::App& app, const CLI::Success& help) {
  errno = 0;
  app.exit(help);
  std::cout.flush();
  if (std::cout.good() || errno == EPIPE) return 0;
  return print_error(concat("standard output: ", std::strerror(errno)));
}

// For a terminal, where no input is meant to be typed.
int print_usage(const CommandLine& line, const Program& program, bool of_program) {
  const HelpFormatter formatter(program, false);
  const CLI::App& shown = of_program ? line.app : *line.command;
  std::cerr << program.overview << '\n'
            << formatter.make_usage(&shown, "")
            << (of_program ? formatter.make_subcommands(&line.app, CLI::AppFormatMode::Normal) : "")
            << '\n'
            << shown.get_footer() << '\n';
  return 2;
}

bool names_command(Words argv) { return !argv.empty() && find_command(argv[0]) != nullptr; }

bool generates(Words argv) { return !argv.empty() && std::string_view(argv[0]) == "--generate"; }

// "lnorm x.npy" means "lnorm apply x.npy".
std::vector<std::string> with_command(Words argv) {
  std::vector<std::string> words(argv.begin(), argv.end());
  for (std::string& word : words) {
    if (word == "--") break;
    if (word.starts_with("-o=")) word.replace(0, 2, "--output");  // or CLI11 takes "=" for a part
  }
  const std::string first = words.empty() ? "" : words.front();
  if (asks_for_help(first) && words.size() > 1 && !words[1].starts_with('-')) {
    throw Error(concat("there is no command '", printable(words[1]), "'"),
                hint_for_command(words[1]));
  }
  if (!names_command(argv) && !asks_for_help(first) && first != "--version" && first != "-V") {
    // Whatever else it is, it is no path.
    const bool is_word =
        !first.empty() && first[0] != '-' && first.find_first_of("./:[{(") == first.npos;
    if (is_word && !is_file(first)) {
      throw Error(concat("there is neither a command nor a file '", printable(first), "'"),
                  first == "help" && names_command(argv.subspan(1))
                      ? concat("here it is lnorm ", argv[1], " --help")
                      : hint_for_command(first));
    }
    words.emplace(words.begin(), all_commands().front().name);
  }
  return words;
}

// Has CLI11 read the words; throws CLI::Success for help.
void read(CommandLine& line, Words argv) {
  const Command command = line.arguments.command;
  std::vector<std::string> words = with_command(argv);
  if (find_command(words.front()) != nullptr) check_words(command, argv);
  try {
    std::reverse(words.begin(), words.end());  // CLI11 takes them from the back
    line.app.parse(std::move(words));
  } catch (const CLI::Success&) {
    throw;
  } catch (const CLI::ArgumentMismatch& error) {
    std::string name = error.what();
    const bool flag = name.find("flag override") != std::string::npos;
    name.erase(name.find_first_of(": "));
    if (flag) name.insert(0, name.size() == 1 ? "-" : "--");  // CLI11 gives it without
    throw Error(name + (flag ? " takes no value" : " takes one value, found none"),
                hint_of(command));
  } catch (const CLI::ParseError& error) {
    throw Error(error.what(), hint_of(command));
  }
  place_extras(line, argv);
  refuse_repeated_flags(*line.command);
  check_options(line.arguments);
}

}  // namespace

const Program kLnorm{"lnorm", "",
                     "lnorm normalizes tensors over any of their axes: exact, in any pipe.\n",
                     std::string(all_commands().front().examples)};

ReadOptions InputArguments::reading(std::size_t position) const {
  ReadOptions reading = options;
  const auto take = [&](const auto& values, auto& value) {
    if (!values.empty()) value = values.size() == 1 ? values.front() : values[position];
  };
  take(from, reading.from);
  take(as, reading.as);
  take(offsets, reading.offset);
  // One format of several inputs: some of them may say that it is not theirs.
  reading.yields = from.size() == 1 && (position > 0 || from.front() == Format::raw);
  return reading;
}

Arguments initial_arguments(Command command) {
  Arguments arguments;
  arguments.command = command;
  arguments.normalization.kernel = backends().front().name;
  if (command == kSoftmax) arguments.normalization.options.axes = AxisList{{-1}};
  if (command == kReport) arguments.page.path = "-";
  return arguments;
}

std::variant<Arguments, Done> parse_arguments(int argc, const char* const* argv,
                                              const Program& program) {
  std::vector<const char*> words(argv + std::min(argc, 1), argv + argc);
  if (words.size() > 1 && asks_for_help(words[0]) && names_command({&words[1], 1})) {
    std::swap(words[0], words[1]);
  }
  // --help all
  const auto asked = std::find_if(words.begin(), words.end(), asks_for_help);
  const bool describes_all =
      std::distance(asked, words.end()) > 1 && asked[1] == std::string_view("all");
  if (describes_all) words.erase(asked + 1);
  if (generates(words)) return Done{generate(program, Words(words).subspan(1))};
  CommandLine line;
  Arguments& arguments = line.arguments;
  if (names_command(words)) arguments.command = find_command(words[0])->command;
  arguments = initial_arguments(arguments.command);
  set_up(line, program, words, describes_all);
  try {
    read(line, words);
  } catch (const CLI::Success& help) {
    return Done{print_help(line.app, help)};
  }
  const bool may_read_terminal = (arguments.command & (kCompare | kCheck | kInputs)) == 0 &&
                                 !arguments.lists_kernels && line.arguments.words.empty();
  if (may_read_terminal && os::is_terminal(os::FileDescriptor(STDIN_FILENO, false))) {
    return Done{print_usage(line, program, words.empty())};
  }
  check_arguments(arguments);
  arguments.input.options.in_parallel = in_parallel(arguments.work.threads);
  return arguments;
}

}  // namespace lnorm::app
