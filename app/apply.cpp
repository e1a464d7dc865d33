#include <algorithm>
#include <memory>
#include <string_view>
#include <vector>

#include "commands.hpp"
#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/io/byte_sink.hpp"
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

// Standard input can be read once, and a file written once.
void check_streams(const ApplyArguments& arguments) {
  const auto count = [](std::string_view what, std::vector<std::string> paths) {
    std::sort(paths.begin(), paths.end());
    const auto twice = std::adjacent_find(paths.begin(), paths.end());
    if (twice == paths.end()) return;
    throw Error(concat(*twice == "-" ? concat("standard ", what) : printable(*twice),
                       " is named for two ", what, "s, expected one at most"));
  };
  std::vector<std::string> inputs;
  for (const auto& name : {arguments.weight, arguments.bias}) {
    if (name == "-") inputs.push_back(*name);
  }
  if (arguments.input.value_or("-") == "-") inputs.emplace_back("-");
  count("input", inputs);
  std::vector<std::string> outputs{arguments.output.path};
  if (arguments.save_mean) outputs.push_back(*arguments.save_mean);
  if (arguments.save_rstd) outputs.push_back(*arguments.save_rstd);
  count("output", outputs);
}

bool is_literal(const std::string& text) {
  struct stat ignored;
  if (text.empty() || os::exists(text, &ignored)) return false;
  return text.find_first_of("[{") == 0 || text == "NaN" || text == "Infinity" ||
         text.find_first_not_of("+-.0123456789eE") == std::string::npos;
}

AffineTerm affine_term(std::string_view role, const std::optional<std::string>& name,
                       const Plan& plan, bool plus_one) {
  if (!name) return {};
  const auto source = is_literal(*name) && *name != "-" ? parse_json(concat("--", role), *name)
                                                        : open_tensor(*name, {}).source;
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
  std::vector<RowObserver*> observers;
  for (const auto& file : stats_files) observers.push_back(file.get());

  run(*input.source, plan, kernel, affine, observers, *sink);
  for (const auto& file : stats_files) file->finish();
  bytes.finish();
  for (const auto& file : stats_files) file->commit();
  bytes.commit();
  return 0;
}

}  // namespace lnorm::app
