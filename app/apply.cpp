#include <algorithm>
#include <filesystem>
#include <memory>
#include <string_view>
#include <vector>

#include "commands.hpp"
#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/io/byte_sink.hpp"
#include "lnorm/io/json_text.hpp"
#include "lnorm/io/npy.hpp"
#include "lnorm/io/tensor_source.hpp"
#include "lnorm/pipeline/load_affine.hpp"
#include "lnorm/pipeline/run.hpp"
#include "lnorm/report/text_sink.hpp"

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

Format output_format(const OutputArguments& output, const ByteSink& bytes, Format input) {
  if (output.format) return *output.format;
  if (const auto by_extension = format_of_extension(output.path)) return *by_extension;
  return bytes.is_terminal() ? Format::text : input;
}

// A file of one number a row, taken from the blocks as they pass.
class StatsFile final : public RowObserver {
 public:
  StatsFile(const std::string& path, std::span<const double> RowBlock::*column,
            const TensorInfo& info, const OutputArguments& output)
      : bytes_(path), column_(column) {
    const Format format = format_of_extension(path).value_or(Format::npy);
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

 private:
  ByteSink bytes_;
  std::span<const double> RowBlock::*column_;
  std::unique_ptr<TensorSink> sink_;
};

bool is_device(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_other(path, ignored);
}

// The same for all spellings of a file's name, as far as that can be told.
std::string one_name(const std::string& path) {
  std::error_code error;
  const auto absolute = std::filesystem::absolute(path, error);
  const auto canonical = std::filesystem::weakly_canonical(absolute, error);
  return error ? path : canonical.string();
}

// Standard input can be read once, and a regular file written once.
void check_streams(const ApplyArguments& arguments) {
  int standard_inputs = 0;
  for (const auto& name :
       {std::optional(arguments.input.value_or("-")), arguments.weight, arguments.bias}) {
    if (name && (*name == "-" || name->starts_with("-:"))) ++standard_inputs;
  }
  if (standard_inputs > 1) throw Error("standard input is named for two inputs, expected one");

  std::vector<std::string> outputs;
  for (const auto& path :
       {std::optional(arguments.output.path), arguments.save_mean, arguments.save_rstd}) {
    if (!path || is_device(*path)) continue;
    const std::string file = *path == "-" ? "standard output" : one_name(*path);
    if (std::find(outputs.begin(), outputs.end(), file) != outputs.end()) {
      throw Error(concat(printable(file), " is named for two outputs, expected one"));
    }
    outputs.push_back(file);
  }
}

// JSON in the place of a name: a list, an object, a number, or one of the words that stand for one.
bool is_literal(const std::string& text) {
  struct stat ignored;
  const std::string_view content = trimmed_json(text);
  if (content.empty() || content == "-" || os::exists(text, &ignored)) return false;
  return content.find_first_of("[{") == 0 || content == "NaN" || content == "null" ||
         content == "Infinity" || content == "-Infinity" ||
         content.find_first_not_of("+-.0123456789eE") == std::string_view::npos;
}

AffineTerm affine_term(std::string_view role, const std::optional<std::string>& name,
                       const Plan& plan, bool plus_one) {
  if (!name) return {};
  const auto source =
      is_literal(*name) ? parse_json(concat("--", role), *name) : open_tensor(*name, {}).source;
  return load_affine_term(role, *source, plan, plus_one);
}

}  // namespace

int apply(const ApplyArguments& arguments) {
  check_streams(arguments);
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
