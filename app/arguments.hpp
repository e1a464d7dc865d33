#pragma once

#include <optional>
#include <string>
#include <variant>

#include "lnorm/core/dtype.hpp"
#include "lnorm/core/options.hpp"
#include "lnorm/io/format.hpp"
#include "lnorm/io/json_tensor.hpp"
#include "lnorm/report/torch_text.hpp"

// The command line as plain values. A path of "-" is standard input or output.
namespace lnorm::app {

struct OutputArguments {
  std::string path = "-";
  std::optional<Format> format;
  std::optional<DType> dtype;
  JsonNan nan = JsonNan::python;
  PrintOptions print;
};

struct ApplyArguments {
  std::optional<std::string> input;  // not given: standard input
  std::optional<Format> from;
  LayerNormOptions options;
  std::optional<std::string> weight;
  std::optional<std::string> bias;
  std::string kernel;
  OutputArguments output;
  std::optional<std::string> save_mean;
  std::optional<std::string> save_rstd;
  bool keepdim = true;
};

// Nothing more to do: help or the version was printed, or the usage was wrong and has been
// reported.
struct Done {
  int exit_status;
};

std::variant<ApplyArguments, Done> parse_arguments(int argc, const char* const* argv);

}  // namespace lnorm::app
