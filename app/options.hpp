#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "arguments.hpp"
#include "lnorm/core/error.hpp"
#include "lnorm/core/options.hpp"

// The one table of options: what help, parser, checks, hints, manual and completions know of them.
namespace lnorm::app {

// The words between separators.
std::vector<std::string_view> split(std::string_view text, char separator);

// Whether the text is a decimal. Beyond the largest float64 the value is infinity.
bool parse_real(std::string_view text, double& value);

// A:B again, as "5:8" or ":-1".
std::string range_text(const RowRange& range);

struct OptionValue;  // option_value.hpp

// This is told to whoever wants another shape of a tensor.
inline constexpr std::string_view kKeepsShape =
    "a tensor keeps its shape; --axes or --normalized-shape chooses the normalized axes";

// What other tools call an option.
struct Called {
  std::string_view words = {};  // lower case, dashes between words, blanks between several
  std::string_view hint = {};   // in place of "here it is OPTION"
  Commands in = 0;              // where it is meant so; 0: in the commands that have the option
  std::string_view name = {};   // which of the option's names; empty: the first
};

// Where an option does nothing. Options have blanks between them.
struct NoEffect {
  std::string_view without = {};  // any of these
  std::string_view beside = {};   // one of these
  std::string_view unless = {};   // but with this one it does something
  Commands in = kAllCommands;
};

// What the program says of a remedy that the library knows.
struct Advice {
  Remedy::Setting setting = Remedy::Setting::none;
  std::string_view text = {};  // with {} for the value
};

// What few options have.
struct OptionExtras {
  std::string (*value_of)() = nullptr;  // in place of value
  bool repeats = false;                 // may be given several times
  std::string_view one_of = {};         // all options of which one may be given
  Advice advice = {};
  std::array<NoEffect, 3> no_effect = {};
  std::array<Called, 6> called = {};
};

struct Option : OptionExtras {
  using Set = void (*)(Arguments&, const OptionValue&);

  constexpr Option(std::string_view its_names, Commands its_commands, std::string_view its_group,
                   std::string_view its_value, std::string_view its_help, Set its_set,
                   const OptionExtras& extras = {})
      : OptionExtras(extras),
        names(its_names),
        commands(its_commands),
        group(its_group),
        value(its_value),
        help(its_help),
        set(its_set) {}

  std::string_view names;  // "-o,--output"; messages have the first
  Commands commands;
  std::string_view group;  // of the help; empty: what the command puts out
  std::string_view value;  // PATH a file, T a tensor, npy|json a choice; empty: a flag
  std::string_view help;
  Set set;

  std::string_view name() const { return names.substr(0, names.find(',')); }
  bool has_name(std::string_view name) const;
  bool is_flag() const { return value.empty() && value_of == nullptr; }
  std::string value_text() const { return value_of == nullptr ? std::string(value) : value_of(); }
};

// They have the order of the help. An option that means something else in another command has a row
// of its own there.
std::span<const Option> all_options();

// The option of these commands; null if they have none of that name.
const Option* find_option(Commands commands, std::string_view name);

// The option that chooses the norm; empty for the usual one.
std::string_view option_of(const Formula& formula);

// Returns the options of the command line for these, without those that name tensors: "--eps 0.001 --rms"; "no options" if all
// are the default.
std::string normalization_text(const LayerNormOptions& options);

}  // namespace lnorm::app
