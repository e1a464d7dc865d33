#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "lnorm/core/dtype.hpp"
#include "lnorm/core/options.hpp"
#include "lnorm/core/shape.hpp"
#include "lnorm/io/json/json_tensor.hpp"
#include "lnorm/io/open_tensor.hpp"
#include "lnorm/measure/criteria.hpp"
#include "lnorm/measure/worst.hpp"
#include "lnorm/pipeline/pairs.hpp"
#include "lnorm/pipeline/ranks.hpp"
#include "lnorm/report/torch_text.hpp"

// The command line as plain values. A path of "-" is standard input or output.
namespace lnorm::app {

// Rows from the first up to end, as a slice of Python: negative ones count from the end.
struct RowRange {
  std::optional<std::int64_t> first;
  std::optional<std::int64_t> end;
};

struct InputArguments {
  std::vector<std::string> names{"-"};
  ReadOptions options;
  std::optional<RowRange> rows;  // of each tensor; all if not given
  bool keep_going = false;
};

struct NormalizationArguments {
  LayerNormOptions options;
  std::optional<std::string> weight;
  std::optional<std::string> bias;
  std::optional<std::string> residual;
  bool round_sum =
      false;  // with the residual, to the output dtype; options has the other roundings
  std::string kernel;
};

struct PrintArguments {
  PrintOptions options;
  bool threshold = false;  // is given
  bool edgeitems = false;  // is given
  std::string given;       // one of these options; empty if none is
};

struct OutputArguments {
  std::string path = "-";
  std::optional<Format> format;
  std::optional<DType> dtype;
  bool saturates = false;
  std::optional<double> scale;      // of a float8
  std::optional<std::string> name;  // of the tensor, where the format has one
  std::optional<JsonNan> nan;       // python if not given
  PrintArguments print;
};

// automatic: on a terminal.
enum class When { automatic, always, never };

// How the work is done, and what is told of it.
struct WorkArguments {
  int threads = 0;  // as many as the machine has
  When progress = When::automatic;
  bool verbose = false;
  Ranks* ranks = &sole_rank();  // who does it
};

// What a report is: for people, or for programs.
enum class Report { text, json, csv };

// A page to look at.
struct PageArguments {
  std::string path;
  std::optional<std::string> specifications;  // a folder, for these by themselves
};

struct ApplyArguments {
  InputArguments input;
  NormalizationArguments normalization;
  OutputArguments output;
  std::optional<std::string> save_mean;
  std::optional<std::string> save_rstd;
  std::optional<std::string> save_sum;
  bool keepdim = true;
  WorkArguments work;
};

struct StatsArguments {
  InputArguments input;
  NormalizationArguments normalization;
  bool softmax = false;
  bool histogram = false;
  bool all = false;
  std::optional<int> digits;  // of the text
  Report report = Report::text;
  When color = When::automatic;
  WorkArguments work;
};

struct CompareArguments {
  std::string actual;
  std::string expected;
  std::optional<DType> as;
  std::optional<NormalizedAxes> axes;  // of rows to count
  std::optional<RowRange> rows;        // as in InputArguments
  std::optional<double> rtol;
  std::optional<double> atol;
  Criteria criteria;                     // but for the tolerance
  std::optional<std::size_t> max_diffs;  // 5 in JSON, where they have always been; none in text
  std::optional<std::size_t> worst;      // 5
  std::optional<WorstBy> by;             // ulp
  bool histogram = false;
  std::optional<int> linewidth;  // of the text
  PairingRules pairing;          // of several tensors, as the next two
  bool common = false;           // names on one side alone are no differences
  bool keep_going = false;
  Report report = Report::text;
  bool quiet = false;
  PageArguments page;  // empty: none
  When color = When::automatic;
  WorkArguments work;
};

struct SoftmaxArguments {
  InputArguments input;
  NormalizedAxes axes = AxisList{{-1}};
  OutputArguments output;
  WorkArguments work;
};

struct GradArguments {
  InputArguments input;
  std::string dy;
  NormalizationArguments normalization;  // without a bias, which has no part in it
  std::optional<std::string> mean;
  std::optional<std::string> rstd;
  std::optional<std::string> dx;  // where it goes, as the others; one of them at least
  std::optional<std::string> dweight;
  std::optional<std::string> dbias;
  OutputArguments output;  // of all of them, but for the path
  WorkArguments work;
};

struct ShowArguments {
  InputArguments input;
  PrintArguments print;
  bool header = false;           // also where the output is no terminal
  Report report = Report::text;  // of a list of tensors
  int threads = 0;               // as in all commands
  When color = When::automatic;
  When progress = When::automatic;
};

struct ExplainArguments {
  InputArguments input;
  NormalizationArguments normalization;
  std::optional<Shape> row;   // its index; the first one if not given
  std::optional<int> digits;  // of the text
  bool json = false;
  When color = When::automatic;
  WorkArguments work;
};

struct ReportArguments {
  InputArguments input;
  NormalizationArguments normalization;
  bool softmax = false;
  bool all = false;  // a section for every tensor of many
  PageArguments page{"-", {}};
  WorkArguments work;
};

// Nothing is left to do: help or the version was printed, or wrong usage was reported.
struct Done {
  int exit_status;
};

using Arguments =
    std::variant<ApplyArguments, StatsArguments, CompareArguments, SoftmaxArguments, GradArguments,
                 ExplainArguments, ReportArguments, ShowArguments, Done>;

// What help says of the program itself.
struct Program {
  std::string name;
  std::string launcher;  // stands before the name in usage
  std::string overview;
  std::string examples;
};
extern const Program kLnorm;

Arguments parse_arguments(int argc, const char* const* argv, const Program& program);

}  // namespace lnorm::app
