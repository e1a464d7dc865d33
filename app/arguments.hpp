#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "lnorm/core/dtype.hpp"
#include "lnorm/core/options.hpp"
#include "lnorm/core/shape.hpp"
#include "lnorm/io/json/json_tensor.hpp"
#include "lnorm/io/memory_tensor.hpp"
#include "lnorm/io/open_tensor.hpp"
#include "lnorm/kernel/quantize.hpp"
#include "lnorm/measure/criteria.hpp"
#include "lnorm/measure/top.hpp"
#include "lnorm/measure/worst.hpp"
#include "lnorm/pipeline/pairs.hpp"
#include "lnorm/pipeline/ranks.hpp"
#include "lnorm/report/torch_text.hpp"
#include "roles.hpp"

// The command line as plain values. A path of "-" is standard input or output.
namespace lnorm::app {

// Or several of them, as a set of bits.
enum Command : unsigned {
  kApply = 1,
  kStats = 2,
  kCompare = 4,
  kSoftmax = 8,
  kGrad = 16,
  kExplain = 32,
  kReport = 64,
  kShow = 128,
  kCheck = 256,
  kMutants = 512,
  kInputs = 1024,
  kConvert = 2048
};
using Commands = unsigned;
inline constexpr Commands kAllCommands = 4095;

// What a command writes, in the order of its outputs.
enum class Result : std::size_t { y, mean, rstd, variance, sum, scale, dx, dweight, dbias };

// A row of the one table of results.
struct ResultRow {
  Result result;
  Commands commands;
  std::string_view name;    // in C and Python, and of its tensor
  std::string_view option;  // that says where it goes
};
inline constexpr std::array<ResultRow, 9> kResults{{
    {Result::y, kApply | kSoftmax | kConvert, "y", "-o"},
    {Result::mean, kApply, "mean", "--save-mean"},
    {Result::rstd, kApply, "rstd", "--save-rstd"},
    {Result::variance, kApply, "variance", "--save-variance"},
    {Result::sum, kApply, "sum", "--save-sum"},
    {Result::scale, kApply, "scale", "--save-scale"},
    {Result::dx, kGrad, "dx", "--dx"},
    {Result::dweight, kGrad, "dweight", "--dweight"},
    {Result::dbias, kGrad, "dbias", "--dbias"},
}};

constexpr const ResultRow& result_row(Result result) {
  return kResults[static_cast<std::size_t>(result)];
}

// Rows from the first up to end, as a slice of Python: negative ones count from the end.
struct RowRange {
  std::optional<std::int64_t> first;
  std::optional<std::int64_t> end;
};

struct InputArguments {
  std::vector<std::string> names{"-"};
  ReadOptions options{.files = std::make_shared<OpenSets>()};  // which other inputs share
  // --from, --as and --offset where a command has two inputs or more: one value for all of them, or one each by position.
  std::vector<Format> from;
  std::vector<DType> as;
  std::vector<std::int64_t> offsets;
  std::optional<RowRange> rows;  // of each tensor; all if not given
  bool keep_going = false;

  // How the input at a position is read: INPUT, then --dy, then OUTPUT.
  ReadOptions reading(std::size_t position) const;
};

struct NormalizationArguments {
  LayerNormOptions options;
  bool round_sum =
      false;  // with the residual, to the output dtype; options has the other roundings
  std::optional<std::int64_t> ddof;  // as given
  std::string kernel;
};

// Whose largest |y| makes the scale of quantized results.
enum class ScaleOf { row, tensor, group, given };

// qmax: 0 if it is not given.
struct QuantizationArguments : Quantization {
  std::optional<ScaleOf> scale_of;  // of results that are not quantized nothing is given
  std::optional<AxisList> axes;     // whose elements share a scale, if not those of a row
  bool is_transposed = false;       // the kernel's scales, groups first

  explicit operator bool() const { return scale_of.has_value(); }
};

struct PrintArguments {
  PrintOptions options;
  bool threshold = false;  // is given
  bool edgeitems = false;  // is given
  std::string given;       // one of these options; empty if none is
};

// Where results go that a job keeps in memory, by the paths that stand for them. Nothing: the result is dropped.
using ResultsInMemory = std::map<std::string, std::optional<Memory>>;

struct OutputArguments {
  std::string path = "-";
  std::optional<Format> format;
  std::optional<DType> dtype;
  bool saturates = false;
  std::optional<double> scale;      // of a float8
  std::optional<std::string> name;  // of the tensor, where the format has one
  std::optional<JsonNan> nan;       // python if not given
  PrintArguments print;
  const ResultsInMemory* in_memory = nullptr;  // of a job
  std::vector<TensorInfo>* planned =
      nullptr;  // if given, only what the outputs would get of a tensor is found
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
  std::string path;                           // empty: none
  std::optional<std::string> specifications;  // a folder, for these by themselves

  bool is_wanted() const { return !path.empty(); }
};

struct Option;  // options.hpp

// The arguments of one command; what it has no option for stays as it is here.
struct Arguments {
  Command command = kApply;
  std::vector<const Option*> options;  // as they were given
  std::vector<std::string> words;      // the others of the command line

  InputArguments input;  // compare: of both tensors, ACTUAL and EXPECTED
  TensorWords tensors;   // beside these
  // Where results go, but for y, which has output.path; of grad one at least.
  std::map<Result, std::string> results;
  NormalizationArguments normalization;
  std::optional<NormalizedAxes> axes;  // as given
  QuantizationArguments quantization;
  OutputArguments output;  // grad: of all gradients, but for the path
  PageArguments page;
  WorkArguments work;

  // The report on standard output.
  Report report = Report::text;
  When color = When::automatic;
  bool softmax = false;
  bool histogram = false;
  bool all = false;
  bool header = false;        // also where the output is no terminal
  bool quiet = false;         // no report
  bool features = false;      // of the rows, in place of them
  std::optional<int> digits;  // of the text

  // stats
  std::optional<Top> top;  // rows, tensors or features, of those that stand out

  // apply
  bool keepdim = true;

  // grad
  std::optional<DType> parameter_dtype;  // of dweight and dbias

  // explain
  std::optional<Shape> row;  // its index; the first one if not given

  // compare
  std::optional<double> rtol;
  std::optional<double> atol;
  Criteria criteria;                     // but for the tolerance
  std::optional<std::size_t> max_diffs;  // 5 in JSON, where they have always been; none in text
  std::optional<std::size_t> worst;      // 5
  std::optional<WorstBy> by;             // row_ulp
  std::optional<std::string> rows_out;   // where the rows that fail go
  double factor = 2;                     // so many times as far off as the baseline is allowed
  std::optional<int> linewidth;          // of the text
  PairingRules pairing{.called = {"--rename", "--only", "--skip", "--tolerance"}};
  bool common = false;  // names on one side alone are no differences

  // check, with the criteria of compare
  std::optional<DType> arithmetic;    // float32, or float64 for a float64 output
  std::optional<std::int64_t> depth;  // of the kernel's sums
  std::vector<std::string> kernels;   // patterns of wrong kernels to try; empty: all
  std::vector<std::string> skipped_kernels;
  std::optional<std::string> save_json;
  std::optional<std::string> save_junit;

  // mutants, with these and the criteria of compare
  bool lists_kernels = false;  // nothing is tried

  // inputs
  std::optional<Shape> made_shape;
  std::uint64_t seed = 0;

  // Takes an option. Throws Error for a text that it does not have. text: empty for a flag.
  void take(const Option& option, const std::string& text);
  // Whether the option is given, by any of its names.
  bool has(std::string_view option) const;
  // The first one of these, with blanks between them, that is given; empty if none is.
  std::string_view first_of(std::string_view names) const;
};

// Nothing is left to do: help or the version was printed, or wrong usage was reported.
struct Done {
  int exit_status;
};

struct CommandRow;  // commands.hpp

// What help says of the program itself.
struct Program {
  std::string name;
  std::string launcher;  // stands before the name in usage
  std::string overview;
  std::string examples;

  // How it is called. command: null for any.
  std::string usage(const CommandRow* command) const;
  // The end of its help.
  std::string footer() const;
};
extern const Program kLnorm;

// Those of a command line without options.
Arguments initial_arguments(Command command);

std::variant<Arguments, Done> parse_arguments(int argc, const char* const* argv,
                                              const Program& program);

}  // namespace lnorm::app
