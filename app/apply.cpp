#include <algorithm>
#include <cmath>
#include <memory>
#include <string_view>
#include <vector>

#include "commands.hpp"
#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/io/byte_sink.hpp"
#include "lnorm/io/json_number.hpp"
#include "lnorm/io/json_text.hpp"
#include "lnorm/io/npy.hpp"
#include "lnorm/io/tensor_source.hpp"
#include "lnorm/pipeline/load_affine.hpp"
#include "lnorm/pipeline/run.hpp"
#include "lnorm/report/text_sink.hpp"
#include "parse_values.hpp"

namespace lnorm::app {

namespace {

std::unique_ptr<TensorSink> make_sink(ByteSink& bytes, Format format, const TensorInfo& info,
                                      const OutputArguments& output) {
  switch (format) {
    case Format::json:
      return make_json_sink(bytes, info, output.nan);
    case Format::text:
      return make_text_sink(bytes, info, output.print);
    case Format::npy:
      break;
  }
  return make_npy_sink(bytes, info);
}

// What a name's extension asks for, if that can be written.
std::optional<Format> named_format(const std::string& path) {
  const std::string ending = extension(path);
  for (const char* const unwritten : {".npz", ".safetensors", ".jsonl"}) {
    if (ending == unwritten) {
      throw Error(concat(printable(path), ": ", ending,
                         " is not written yet, expected .npy, .json or .txt"));
    }
  }
  return format_of_extension(path);
}

Format output_format(const OutputArguments& output, const ByteSink& bytes, Format input) {
  if (output.format) return *output.format;
  if (const auto by_extension = named_format(output.path)) return *by_extension;
  return bytes.is_terminal() ? Format::text : input;
}

// A file of one number a row, taken from the blocks as they pass.
class StatsFile final : public RowObserver {
 public:
  StatsFile(const std::string& path, std::span<const double> RowBlock::*column,
            const TensorInfo& info, const OutputArguments& output)
      : bytes_(path), column_(column) {
    const Format format = named_format(path).value_or(Format::npy);
    if (format == Format::npy && bytes_.is_terminal()) {
      throw Error(concat(printable(path), ": binary is not written to a terminal"),
                  "name a file, or one that ends in .json or .txt");
    }
    sink_ = make_sink(bytes_, format, info, output);
  }

  void see(const RowBlock& block) override { sink_->write(std::as_bytes(block.*column_)); }

  void finish() {
    sink_->finish();
    bytes_.finish();
  }
  void commit() { bytes_.commit(); }
  const ByteSink& bytes() const { return bytes_; }

 private:
  ByteSink bytes_;
  std::span<const double> RowBlock::*column_;
  std::unique_ptr<TensorSink> sink_;
};

// Standard input can be read once.
void check_inputs(const ApplyArguments& arguments) {
  int standard_inputs = 0;
  for (const auto& name :
       {std::optional(arguments.input.value_or("-")), arguments.weight, arguments.bias}) {
    if (name && (*name == "-" || name->starts_with("-:"))) ++standard_inputs;
  }
  if (standard_inputs > 1) throw Error("standard input is named for two inputs, expected one");
}

// And a place can be written once.
void check_outputs(const ByteSink& main, const std::vector<std::unique_ptr<StatsFile>>& others) {
  std::vector<std::string> destinations{main.destination()};
  for (const auto& other : others) {
    const std::string destination = other->bytes().destination();
    if (!destination.empty() &&
        std::find(destinations.begin(), destinations.end(), destination) != destinations.end()) {
      throw Error(
          concat(printable(other->bytes().name()), " is named for two outputs, expected one"));
    }
    destinations.push_back(destination);
  }
}

// What may stand in the place of a name: a number, or JSON. Null if it is neither.
std::unique_ptr<TensorSource> parse_literal(const std::string& name, const std::string& text) {
  const std::string_view content = trimmed_json(text);
  double number = 0;
  if (parse_real(content, number)) {
    if (std::isinf(number)) {
      throw Error(concat(name, ": '", content, "' is not in the range of float64"));
    }
    char buffer[32];
    return parse_json(name, std::string(json_number(number, buffer)));
  }
  const bool is_json = content.find_first_of("[{") == 0 || content == "NaN" || content == "null" ||
                       content == "Infinity" || content == "-Infinity";
  return is_json ? parse_json(name, text) : nullptr;
}

AffineTerm affine_term(std::string_view role, const std::optional<std::string>& name,
                       const Plan& plan, bool plus_one) {
  if (!name) return {};
  const std::string option = concat("--", role);
  if (name->empty()) throw Error(concat(option, ": '' is not the name of a file"));
  struct stat ignored;
  std::unique_ptr<TensorSource> source;
  if (!os::exists(*name, &ignored)) source = parse_literal(option, *name);
  if (!source) source = open_tensor(*name, {}).source;
  return load_affine_term(role, *source, plan, plus_one);
}

}  // namespace

int apply(const ApplyArguments& arguments) {
  check_inputs(arguments);
  if (arguments.options.formula.rms && arguments.save_mean) {
    throw Error("--rms subtracts no mean, so that there is none for --save-mean");
  }
  const Kernel& kernel = find_kernel(arguments.kernel);
  const OpenedTensor input = open_tensor(arguments.input.value_or("-"), arguments.from);
  const Plan plan = make_plan(input.source->info(), arguments.options, arguments.output.dtype);
  const Affine affine{
      affine_term("weight", arguments.weight, plan, arguments.options.zero_centered_weight),
      affine_term("bias", arguments.bias, plan, false)};

  ByteSink bytes(arguments.output.path);
  const Format format = output_format(arguments.output, bytes, input.format);
  const auto sink =
      make_sink(bytes, format, {bytes.name(), plan.out, plan.shape}, arguments.output);

  std::vector<std::unique_ptr<StatsFile>> stats_files;
  const auto add_stats_file = [&](const std::optional<std::string>& path,
                                  std::span<const double> RowBlock::*column) {
    if (!path) return;
    const TensorInfo info{*path, DType::float64, plan.stats_shape(arguments.keepdim)};
    stats_files.push_back(std::make_unique<StatsFile>(*path, column, info, arguments.output));
  };
  add_stats_file(arguments.save_mean, &RowBlock::mean);
  add_stats_file(arguments.save_rstd, &RowBlock::rstd);
  check_outputs(bytes, stats_files);
  if (!stats_files.empty()) bytes.outlive_reader();
  std::vector<RowObserver*> observers;
  observers.reserve(stats_files.size());
  for (const auto& file : stats_files) observers.push_back(file.get());

  run(*input.source, plan, kernel, affine, observers, *sink);
  for (const auto& file : stats_files) file->finish();
  bytes.finish();
  for (const auto& file : stats_files) file->commit();
  bytes.commit();
  return 0;
}

}  // namespace lnorm::app
