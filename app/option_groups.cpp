#include "option_groups.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "lnorm/core/error.hpp"
#include "lnorm/core/nearest.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/kernel/layer_norm.hpp"
#include "parse_values.hpp"

namespace lnorm::app {

namespace {

template <class Enum>
void add_choice(
    CLI::App& app, const std::string& names, Enum& value,
    std::vector<std::pair<std::string, Enum>> choices, const std::string& help,
    const std::function<void()>& then = [] {}) {
  std::string type;
  for (const auto& choice : choices) type += concat(type.empty() ? "" : "|", choice.first);
  add_parsed(
      app, names,
      [names, &value, choices, type, then](const std::string& text) {
        const std::string given = lower_case(text);
        std::vector<std::string> words;
        for (const auto& [name, choice] : choices) {
          words.push_back(name);
          if (name != given) continue;
          value = choice;
          then();
          return;
        }
        const std::string near = nearest(given, words);
        throw Error(concat(names, ": '", printable(text), "' is not one of ", type),
                    near.empty() ? "" : concat(names, ' ', near));
      },
      help, type);
}

std::string kernel_names() {
  std::string names;
  for (const Kernel& kernel : kernels()) names += concat(names.empty() ? "" : "|", kernel.name);
  return names;
}

void add_when(CLI::App& app, const std::string& name, When& value, const std::string& help) {
  add_choice<When>(app, name, value,
                   {{"auto", When::automatic}, {"always", When::always}, {"never", When::never}},
                   help);
}

void add_dtype(CLI::App& app, const std::string& name, std::optional<DType>& value,
               const std::string& help, const std::string& choices) {
  add_parsed(
      app, name, [=, &value](const std::string& text) { value = parse_dtype(name, text, choices); },
      help, choices);
}

Shape parse_shape(const std::string& text) {
  Shape shape = parse_list("--shape", text);
  for (const std::int64_t extent : shape) {
    if (extent < 0) throw Error(concat("--shape: size ", extent, " is negative"));
  }
  if (shape.size() > kMaxRank) {
    throw Error(
        concat("--shape: found ", shape.size(), " dimensions, expected at most ", kMaxRank));
  }
  return shape;
}

// sum, xhat, product: some of them, with commas between them.
std::vector<std::string> parse_steps(const std::string& name, const std::string& text) {
  static const std::vector<std::string> kSteps{"sum", "xhat", "product"};
  std::vector<std::string> steps;
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t end = std::min(text.find(',', start), text.size());
    const std::string step = lower_case(text.substr(start, end - start));
    if (std::find(kSteps.begin(), kSteps.end(), step) == kSteps.end()) {
      const std::string near = nearest(step, kSteps);
      throw Error(concat(name, ": '", printable(step), "' is not one of sum, xhat and product"),
                  near.empty() ? "" : concat(name, ' ', near));
    }
    if (std::find(steps.begin(), steps.end(), step) != steps.end()) {
      throw Error(concat(name, ": ", step, " is given twice, expected once"));
    }
    steps.push_back(step);
    start = end + 1;
  }
  return steps;
}

// Each of the three options says it all, so that a second one is a contradiction.
class AxesOptions {
 public:
  AxesOptions(CLI::App& app, SetAxes set) : app_(app), set_(std::move(set)) {}

  template <class Make>
  void add(const std::string& name, Make make, const std::string& help, const std::string& type) {
    add_parsed(
        app_, name,
        [set = set_, given = given_, name, make](const std::string& text) {
          if (!given->empty()) {
            throw Error(concat("found both ", *given, " and ", name,
                               ", expected one of --axis, --axes and --normalized-shape"));
          }
          *given = name;
          set(make(name, text));
        },
        help, type);
  }

  void add_others(const std::string& shape_help, const std::string& list_help) {
    add(
        "--normalized-shape",
        [](const std::string& name, const std::string& text) {
          return NormalizedShape{parse_list(name, text)};
        },
        shape_help, "D[,D...]");
    add(
        "--axes",
        [](const std::string& name, const std::string& text) {
          return AxisList{parse_list(name, text)};
        },
        list_help, "A[,A...]");
  }

 private:
  CLI::App& app_;
  SetAxes set_;
  std::shared_ptr<std::string> given_ = std::make_shared<std::string>();
};

}  // namespace

CLI::Option* add_parsed(CLI::App& app, const std::string& names,
                        std::function<void(const std::string&)> parse, const std::string& help,
                        const std::string& type) {
  return app
      .add_option(
          names,
          [names, parse = std::move(parse)](const std::vector<std::string>& texts) {
            if (texts.size() > 1) {
              const std::size_t comma = names.find(',');
              const std::string others =
                  comma == names.npos ? "" : concat(" (or ", names.substr(comma + 1), ")");
              throw Error(concat(names.substr(0, comma), others, " is given twice, expected once"));
            }
            parse(texts.front());
            return true;
          },
          help)
      ->type_name(type)
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void add_text(CLI::App& app, const std::string& names, std::optional<std::string>& value,
              const std::string& help, const std::string& type) {
  add_parsed(
      app, names, [&value](const std::string& text) { value = text; }, help, type);
}

void add_repeated(CLI::App& app, const std::string& name,
                  const std::function<void(const std::string&)>& parse, const std::string& help,
                  const std::string& type) {
  app.add_option(
         name,
         [parse](const std::vector<std::string>& texts) {
           for (const std::string& text : texts) parse(text);
           return true;
         },
         help)
      ->type_name(type)
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void add_as(CLI::App& app, std::optional<DType>& as) {
  app.option_defaults()->group("Input");
  add_dtype(app, "--as", as, "What the elements of an .npy of dtype V2 or V1 are",
            "bfloat16|float8_e4m3fn|float8_e5m2");
}

void add_input(CLI::App& app, InputArguments& input) {
  app.option_defaults()->group("Input");
  add_choice<std::optional<Format>>(app, "--from", input.options.from,
                                    {{"npy", Format::npy},
                                     {"npz", Format::npz},
                                     {"pt", Format::npz},
                                     {"safetensors", Format::safetensors},
                                     {"json", Format::json},
                                     {"jsonl", Format::jsonl},
                                     {"pb", Format::pb},
                                     {"raw", Format::raw}},
                                    "Input format (default by content); raw is elements alone");
  ReadOptions& options = input.options;
  add_parsed(
      app, "--as",
      [&options](const std::string& text) {
        options.as = parse_dtype("--as", text,
                                 "bool|int8|int16|int32|int64|uint8|uint16|uint32|uint64|"
                                 "float8_e4m3fn|float8_e5m2|float16|bfloat16|float32|float64");
      },
      "What the elements of --from raw are; bfloat16, those of an .npy of dtype V2; "
      "float8_e4m3fn, float8_e5m2, of dtype V1",
      "DTYPE");
  add_parsed(
      app, "--shape", [&options](const std::string& text) { options.shape = parse_shape(text); },
      "The shape of --from raw", "D[,D...]");
  add_parsed(
      app, "--offset",
      [&options](const std::string& text) {
        options.offset = static_cast<std::int64_t>(parse_count("--offset", text, 0, INT64_MAX));
      },
      "How many bytes of --from raw come before the elements (default 0)", "BYTES");
  app.add_flag_callback(
      "--big-endian", [&options] { options.byte_order = std::endian::big; },
      "The elements of --from raw have their most significant byte first");
  add_rows(app, input.rows);
  app.add_flag("--keep-going", input.keep_going,
               "Of several tensors do the others where one cannot be done");
}

void add_rows(CLI::App& app, std::optional<RowRange>& rows) {
  add_parsed(
      app, "--rows", [&rows](const std::string& text) { rows = parse_rows(text); },
      "Only rows A up to B, numbered as stats numbers them; as in Python, A or B may be left out, "
      "and negative ones count from the end",
      "A:B");
}

void add_axes(CLI::App& app, const SetAxes& set) {
  AxesOptions options(app, set);
  options.add(
      "--axis",
      [](const std::string& name, const std::string& text) {
        return FirstAxis{parse_integer(name, text)};
      },
      "First normalized axis; it and all after it (default -1)", "A");
  options.add_others("The trailing shape that is normalized, which must match",
                     "The normalized axes as a list");
}

void add_softmax_axes(CLI::App& app, const SetAxes& set) {
  AxesOptions options(app, set);
  options.add(
      "--axis",
      [](const std::string& name, const std::string& text) {
        return AxisList{{parse_integer(name, text)}};
      },
      "The axis that sums to 1 (default -1)", "A");
  options.add_others("The trailing shape that sums to 1, which must match",
                     "The axes that sum to 1 together");
}

void add_normalization(CLI::App& app, NormalizationArguments& normalization, Pass pass) {
  app.option_defaults()->group("Normalization");
  add_axes(app, [&](const NormalizedAxes& axes) { normalization.options.axes = axes; });
  Formula& formula = normalization.options.formula;
  add_parsed(
      app, "--eps",
      [&](const std::string& text) { formula.eps = parse_not_negative("--eps", text); },
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
      [set_ddof](const std::string& text) {
        set_ddof(static_cast<std::int64_t>(parse_count("--ddof", text, 0, INT64_MAX)));
      },
      "The variance divides by n - N (default 0)", "N");
  app.add_flag_callback(
      "--unbiased", [set_ddof] { set_ddof(1); }, "The same as --ddof 1");
  add_text(app, "--weight,--gamma,--scale", normalization.weight,
           "Multiplies: a tensor of the normalized shape, a JSON literal or a number", "T");
  if (pass == Pass::forward) {
    add_text(app, "--bias,--beta,--shift", normalization.bias, "Is added; the same forms", "T");
  }
  app.add_flag("--zero-centered-weight", normalization.options.zero_centered_weight,
               "Multiply by 1 + weight");
  app.add_flag("--rms", formula.rms,
               "No mean; the mean of squares (divided by n - N) for the variance");
  add_text(app, "--residual", normalization.residual,
           "Is added to the input before all else: a tensor of the same shape", "T");
  add_parsed(
      app, "--round",
      [&](const std::string& text) {
        for (const std::string& step : parse_steps("--round", text)) {
          bool& rounds = step == "sum"    ? normalization.round_sum
                         : step == "xhat" ? normalization.options.rounding.xhat
                                          : normalization.options.rounding.product;
          rounds = true;
        }
      },
      pass == Pass::backward
          ? "sum: round the sum with --residual to the output dtype"
          : "Where else to round to the output dtype: the sum with --residual, xhat (before the "
            "weight), the product (before the bias)",
      pass == Pass::backward ? "sum" : "STEP[,STEP]");
  normalization.kernel = kernels().front().name;
  add_parsed(
      app, "--kernel", [&](const std::string& text) { normalization.kernel = text; },
      "Which code computes (default the first)", kernel_names());
}

void add_output(CLI::App& app, OutputArguments& output) {
  app.option_defaults()->group("Output");
  add_parsed(
      app, "-o,--output", [&](const std::string& text) { output.path = text; },
      "Where the result goes; - is standard output", "PATH");
  add_output_format(app, output);
  app.add_flag("--saturate", output.saturates,
               "What is beyond the greatest float8 becomes that, not NaN or infinity");
  add_parsed(
      app, "--output-scale",
      [&](const std::string& text) { output.scale = parse_real("--output-scale", text); },
      "Multiply the result by S before it is rounded to float8", "S");
}

void add_output_format(CLI::App& app, OutputArguments& output) {
  add_choice<std::optional<Format>>(
      app, "--to", output.format,
      {{"npy", Format::npy},
       {"npz", Format::npz},
       {"safetensors", Format::safetensors},
       {"json", Format::json},
       {"jsonl", Format::jsonl},
       {"text", Format::text}},
      "Output format (default by the extension of -o, else the input's, npy for archives, "
      "safetensors for bfloat16, float8 and for several tensors; text on a terminal)");
  add_dtype(app, "--dtype", output.dtype,
            "Output dtype (default the input's, float64 for integers)",
            "float16|bfloat16|float32|float64|float8_e4m3fn|float8_e5m2");
  add_text(app, "--name", output.name,
           "What .safetensors calls the tensor (default as the input is called)", "NAME");
  add_choice<std::optional<JsonNan>>(app, "--nan", output.nan,
                                     {{"python", JsonNan::python}, {"null", JsonNan::null}},
                                     "How JSON writes NaN: as NaN, or as null (default python)");
}

void add_print(CLI::App& app, PrintArguments& print, std::string_view default_threshold) {
  app.option_defaults()->group("Text output (torch.set_printoptions)");
  PrintOptions& options = print.options;
  const auto add_count = [&](const std::string& name, auto& value, std::int64_t most,
                             const std::string& help) {
    add_parsed(
        app, name,
        [name, &print, &value, most](const std::string& text) {
          using Count = std::remove_reference_t<decltype(value)>;
          const auto count = parse_integer(name, text);
          if (count < 0 || count > most) {
            throw Error(concat(name, ": ", count, " is out of range, expected 0 to ", most));
          }
          value = static_cast<Count>(count);
          print.given = name;
          print.threshold = print.threshold || name == "--threshold";
          print.edgeitems = print.edgeitems || name == "--edgeitems";
        },
        help, "N");
  };
  constexpr std::int64_t kMany = 1'000'000'000'000;
  add_count("--precision", options.precision, 100, "Digits after the point (default 4)");
  add_count("--edgeitems", options.edgeitems, kMany,
            "Elements at each end of a summary (default 3)");
  add_count("--threshold", options.threshold, kMany,
            concat("Summarize above this many elements (default ", default_threshold, ")"));
  add_count("--linewidth", options.linewidth, kMany, "Characters a line (default 80)");
  using SciMode = PrintOptions::SciMode;
  add_choice<SciMode>(app, "--sci-mode", options.sci_mode,
                      {{"auto", SciMode::automatic}, {"on", SciMode::on}, {"off", SciMode::off}},
                      "Scientific notation (default auto)",
                      [&print] { print.given = "--sci-mode"; });
}

void add_worst_by(CLI::App& app, std::optional<WorstBy>& by) {
  add_choice<std::optional<WorstBy>>(
      app, "--by", by, {{"ulp", WorstBy::ulp}, {"abs", WorstBy::abs}, {"rel", WorstBy::rel}},
      "What the worst are measured by (default ulp)");
}

void add_color(CLI::App& app, When& color) {
  add_when(app, "--color", color, "Color (default on a terminal, unless NO_COLOR is set)");
}

void add_progress(CLI::App& app, When& progress) {
  add_when(app, "--progress", progress,
           "Progress on standard error after a second (default on a terminal)");
}

void add_threads(CLI::App& app, int& threads) {
  add_parsed(
      app, "--threads",
      [&threads](const std::string& text) {
        constexpr std::int64_t kMax = 256;
        const std::int64_t count = parse_integer("--threads", text);
        if (count < 1 || count > kMax) {
          throw Error(concat("--threads: ", count, " is out of range, expected 1 to ", kMax));
        }
        threads = static_cast<int>(count);
      },
      "How many threads work (default as many as the machine has)", "N");
}

void add_work(CLI::App& app, WorkArguments& work) {
  add_threads(app, work.threads);
  add_progress(app, work.progress);
  app.add_flag("--verbose", work.verbose, "Tell on standard error how the data goes, and why");
}

}  // namespace lnorm::app
