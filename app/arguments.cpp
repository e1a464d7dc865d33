#include "arguments.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>
#include <iostream>
#include <memory>
#include <optional>
#include <vector>

#include "complain.hpp"
#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/kernel/layer_norm.hpp"
#include "parse_values.hpp"

namespace lnorm::app {

namespace {

constexpr std::string_view kOverview =
    "lnorm normalises tensors over their trailing axes: exact, in any pipe.\n";

constexpr std::string_view kExamples =
    "Examples:\n"
    "  lnorm data/sample.json\n"
    "  lnorm data/sample.npy --weight '[1, 1, 2, 2]' --bias 0.5 -o /tmp/y.npy\n"
    "  cat data/sample.npy | lnorm --axes -2,-1 --unbiased --eps 0 --to json\n"
    "\n"
    "PATH:MEMBER names one tensor of a file that holds several; - is standard input.\n"
    "Exit status: 0 done, 2 anything that kept the work from being done.";

constexpr auto kOptionsHint = "lnorm apply --help lists the options";

class HelpFormatter final : public CLI::Formatter {
 public:
  std::string make_usage(const CLI::App*, std::string) const override {
    return "Usage: lnorm [apply] [INPUT] [OPTIONS]\n";
  }
};

// An option whose text is turned into a value by parse(text). CLI11's own conversion of numbers
// goes by way of long double, which would round eps twice.
template <class Parse>
CLI::Option* add_parsed(CLI::App& app, const std::string& names, Parse parse,
                        const std::string& help, const std::string& type) {
  return app
      .add_option_function<std::string>(
          names, [parse](const std::string& text) { parse(text); }, help)
      ->type_name(type)
      ->expected(1);
}

template <class Enum>
CLI::Option* add_choice(CLI::App& app, const std::string& names, Enum& value,
                        std::vector<std::pair<std::string, Enum>> choices,
                        const std::string& help) {
  std::string type;
  for (const auto& choice : choices) type += concat(type.empty() ? "" : "|", choice.first);
  return add_parsed(
      app, names,
      [names, &value, choices, type](const std::string& text) {
        for (const auto& [name, choice] : choices) {
          if (name == text) {
            value = choice;
            return;
          }
        }
        throw Error(concat(names, ": '", printable(text), "' is not one of ", type));
      },
      help, type);
}

void add_axes(CLI::App& app, LayerNormOptions& options) {
  // Each of the three options says it all, so that a second one is a contradiction.
  auto given = std::make_shared<std::string>();
  const auto add = [&](const std::string& name, auto make, const std::string& help,
                       const std::string& type) {
    add_parsed(
        app, name,
        [&options, given, name, make](const std::string& text) {
          if (!given->empty() && *given != name) {
            throw Error(concat("found both ", *given, " and ", name,
                               ", expected one of --axis, --axes and --normalized-shape"));
          }
          *given = name;
          options.axes = make(name, text);
        },
        help, type);
  };
  add(
      "--axis",
      [](const std::string& name, const std::string& text) {
        return FirstAxis{parse_integer(name, text)};
      },
      "First normalised axis; it and all after it (default -1)", "A");
  add(
      "--normalized-shape",
      [](const std::string& name, const std::string& text) {
        return NormalizedShape{parse_list(name, text)};
      },
      "The trailing shape that is normalised, which must match", "D[,D...]");
  add(
      "--axes",
      [](const std::string& name, const std::string& text) {
        return AxisList{parse_list(name, text)};
      },
      "The normalised axes as a list", "A[,A...]");
}

void add_formula(CLI::App& app, ApplyArguments& arguments) {
  Formula& formula = arguments.options.formula;
  add_parsed(
      app, "--eps", [&](const std::string& text) { formula.eps = parse_real("--eps", text); },
      "Added to the variance; finite, not negative (default 1e-5)", "E");
  add_choice<EpsOn>(app, "--eps-on", formula.eps_on,
                    {{"variance", EpsOn::variance}, {"std", EpsOn::std}},
                    "sqrt(var + eps), or sqrt(var) + eps (default variance)");
  const auto set_ddof =
      [&formula, given = std::make_shared<std::optional<std::int64_t>>()](std::int64_t ddof) {
        if (*given && **given != ddof) {
          throw Error(concat("found --unbiased, which is --ddof 1, and --ddof ",
                             ddof == 1 ? **given : ddof, ", expected one of them"));
        }
        *given = ddof;
        formula.ddof = ddof;
      };
  add_parsed(
      app, "--ddof",
      [set_ddof](const std::string& text) { set_ddof(parse_integer("--ddof", text)); },
      "The variance divides by n - N (default 0)", "N");
  app.add_flag_callback(
      "--unbiased", [set_ddof] { set_ddof(1); }, "The same as --ddof 1");
  app.add_option("--weight,--gamma,--scale", arguments.weight,
                 "Multiplies: a tensor of the normalised shape, a JSON literal or a number")
      ->type_name("T");
  app.add_option("--bias,--beta,--shift", arguments.bias, "Is added; the same forms")
      ->type_name("T");
  app.add_flag("--zero-centered-weight", arguments.options.zero_centered_weight,
               "Multiply by 1 + weight");
  app.add_flag("--rms", formula.rms,
               "No mean; the mean of squares (divided by n - N) for the variance");
}

void add_output(CLI::App& app, OutputArguments& output) {
  app.option_defaults()->group("Output");
  app.add_option("-o,--output", output.path, "Where the result goes; - is standard output")
      ->type_name("PATH");
  add_choice<std::optional<Format>>(
      app, "--to", output.format,
      {{"npy", Format::npy}, {"json", Format::json}, {"text", Format::text}},
      "Output format (default by the extension of -o, else the input's; text on a terminal)");
  add_parsed(
      app, "--dtype",
      [&](const std::string& text) { output.dtype = parse_float_dtype("--dtype", text); },
      "Output dtype (default the input's, float64 for integers)", "float16|float32|float64");
  add_choice<JsonNan>(app, "--nan", output.nan,
                      {{"python", JsonNan::python}, {"null", JsonNan::null}},
                      "How JSON writes NaN: as NaN, or as null (default python)");
}

void add_print(CLI::App& app, PrintOptions& print) {
  app.option_defaults()->group("Text output (torch.set_printoptions)");
  const auto add_count = [&](const std::string& name, auto& value, std::int64_t most,
                             const std::string& help) {
    add_parsed(
        app, name,
        [name, &value, most](const std::string& text) {
          using Count = std::remove_reference_t<decltype(value)>;
          const auto count = parse_integer(name, text);
          if (count < 0 || count > most) {
            throw Error(concat(name, ": ", count, " is out of range, expected 0 to ", most));
          }
          value = static_cast<Count>(count);
        },
        help, "N");
  };
  constexpr std::int64_t kMany = 1'000'000'000'000;
  add_count("--precision", print.precision, 100, "Digits after the point (default 4)");
  add_count("--edgeitems", print.edgeitems, kMany, "Elements at each end of a summary (default 3)");
  add_count("--threshold", print.threshold, kMany,
            "Summarise above this many elements (default 1000)");
  add_count("--linewidth", print.linewidth, kMany, "Characters a line (default 80)");
  using SciMode = PrintOptions::SciMode;
  add_choice<SciMode>(app, "--sci-mode", print.sci_mode,
                      {{"auto", SciMode::automatic}, {"on", SciMode::on}, {"off", SciMode::off}},
                      "Scientific notation (default auto)");
}

std::string kernel_names() {
  std::string names;
  for (const Kernel& kernel : kernels()) names += concat(names.empty() ? "" : "|", kernel.name);
  return names;
}

void add_apply(CLI::App& app, ApplyArguments& arguments) {
  CLI::App& apply = *app.add_subcommand("apply", "Normalise a tensor (the default command)");
  apply.add_option("INPUT", arguments.input, "The tensor; standard input if not given")
      ->type_name("");
  apply.option_defaults()->group("Normalisation");
  add_axes(apply, arguments.options);
  add_formula(apply, arguments);
  apply.add_option("--kernel", arguments.kernel, "Which code computes (default the first)")
      ->type_name(kernel_names());
  apply.option_defaults()->group("Input");
  add_choice<std::optional<Format>>(apply, "--from", arguments.from,
                                    {{"npy", Format::npy}, {"json", Format::json}},
                                    "Input format (default by content)");
  add_output(apply, arguments.output);
  apply
      .add_option("--save-mean", arguments.save_mean,
                  "Write the rows' means, float64; .npy unless named .json or .txt")
      ->type_name("PATH");
  apply
      .add_option("--save-rstd", arguments.save_rstd,
                  "The same of what they are multiplied by, 1/sqrt(var + eps) or so")
      ->type_name("PATH");
  apply.add_flag_callback(
      "--no-keepdim", [&] { arguments.keepdim = false; },
      "Drop the normalised axes from mean and rstd, not keep them as 1");
  add_print(apply, arguments.output.print);
  apply.allow_extras();
  apply.footer(std::string(kExamples));
}

// What CLI11 could not place: "-:member", which it takes for an option; then an option that is not
// there, or one word too many.
void place_extras(const CLI::App& app, ApplyArguments& arguments) {
  for (const std::string& word : app.remaining(true)) {
    if (word == "--") continue;
    if (word.starts_with("-:") && !arguments.input) {
      arguments.input = word;
    } else if (word.starts_with('-') && word.size() > 1) {
      throw Error(concat("there is no option ", printable(word)), kOptionsHint);
    } else {
      throw Error(concat("found two INPUTs, '", printable(arguments.input.value_or("")), "' and '",
                         printable(word), "', expected one"),
                  kOptionsHint);
    }
  }
}

// Prints what help asks for; returns the exit status.
int print_help(const CLI::App& app, const CLI::Success& help) {
  errno = 0;
  app.exit(help);
  std::cout.flush();
  if (std::cout.good() || errno == EPIPE) return 0;
  return complain(concat("standard output: ", std::strerror(errno)));
}

// "lnorm x.npy" means "lnorm apply x.npy".
std::vector<std::string> with_command(int argc, const char* const* argv) {
  std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  const std::string first = words.empty() ? "" : words.front();
  for (const char* const later : {"stats", "compare", "softmax", "show"}) {
    if (first == later) {
      throw Error(concat("the command ", later, " is not in this version yet, only apply"),
                  concat("a file of that name is ./", later));
    }
  }
  if (first != "apply" && first != "--help" && first != "-h" && first != "--version") {
    words.insert(words.begin(), "apply");
  }
  return {words.rbegin(), words.rend()};  // CLI11 takes them from the back
}

}  // namespace

std::variant<ApplyArguments, Done> parse_arguments(int argc, const char* const* argv) {
  ApplyArguments arguments;
  arguments.kernel = kernels().front().name;
  CLI::App app{std::string(kOverview), "lnorm"};
  app.set_version_flag("--version", "lnorm " LNORM_VERSION);
  app.footer("lnorm apply --help lists the options.\n\n" + std::string(kExamples));
  app.require_subcommand(1);
  app.allow_extras();
  app.formatter(std::make_shared<HelpFormatter>());
  add_apply(app, arguments);
  try {
    app.parse(with_command(argc, argv));
  } catch (const CLI::Success& help) {
    return Done{print_help(app, help)};
  } catch (const CLI::ArgumentMismatch& error) {
    const std::string_view what = error.what();
    throw Error(concat(what.substr(0, what.find(':')), " takes one value"), kOptionsHint);
  } catch (const CLI::ParseError& error) {
    throw Error(error.what(), kOptionsHint);
  }
  place_extras(app, arguments);
  if (!arguments.input && os::is_terminal(os::FileDescriptor(STDIN_FILENO, false))) {
    std::cerr << kOverview << "\nUsage: lnorm [INPUT] [OPTIONS]\n\n" << kExamples << "\n";
    return Done{2};
  }
  return arguments;
}

}  // namespace lnorm::app
