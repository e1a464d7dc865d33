#include "lnorm/pipeline/inputs.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "commands.hpp"
#include "lnorm/core/dtype_table.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/io/folder_sink.hpp"
#include "lnorm/io/format.hpp"
#include "lnorm/io/manifest.hpp"
#include "options.hpp"
#include "outputs.hpp"
#include "quantization.hpp"
#include "terminal.hpp"

namespace lnorm::app {

namespace {

std::vector<const MadeTensor*> tensors_of(const MadeInputs& made) {
  std::vector<const MadeTensor*> tensors;
  for (const MadeCase& one : made.cases) {
    tensors.insert(tensors.end(), {&one.x, &one.weight, &one.bias});
    if (one.dy) tensors.push_back(&*one.dy);
  }
  return tensors;
}

void write_tensors(const std::vector<const MadeTensor*>& tensors, TensorSetSink& set) {
  std::string buffer;
  for (const MadeTensor* const tensor : tensors) {
    const auto sink = set.begin(tensor->info);
    sink->write(sink->encode(0, tensor->elements, buffer));
    sink->finish();
  }
  set.finish();
}

void write_folder(const MadeInputs& made, const InputsOptions& options, const std::string& path) {
  const Format format = is_npy_dtype(options.dtype) ? Format::npy : Format::safetensors;
  std::string extension = concat('.', format_row(format).name);
  std::optional<FolderSink> folder;
  open_output("-o", path, [&] { folder.emplace(path); });
  folder->set_name(concat("-o ", path));
  const auto set = make_folder_set_sink(
      *folder, [=](const TensorInfo&) { return extension; },
      [&](ByteSink& bytes, const TensorInfo& info) {
        return create_tensor(format, bytes, info, {});
      });
  write_tensors(tensors_of(made), *set);
  folder->begin("manifest", ".json").write(manifest_of(made, options, extension));
  folder->keep();
  folder->finish();
  folder->commit();
}

void write_file(const MadeInputs& made, const InputsOptions& options, const std::string& path,
                const FormatRow& format) {
  std::optional<ByteSink> file;
  std::optional<ByteSink> manifest;
  open_output("-o", path, [&] {
    file.emplace(path);
    manifest.emplace(manifest_path(path));
  });
  const auto tensors = tensors_of(made);
  std::vector<TensorInfo> infos;
  infos.reserve(tensors.size());
  for (const MadeTensor* const tensor : tensors) infos.push_back(tensor->info);
  write_tensors(tensors, *format.create_set(*file, infos, {}));
  manifest->write(manifest_of(made, options, ""));
  file->finish();
  manifest->finish();
  file->commit();
  manifest->commit();
}

}  // namespace

std::string manifest_of(const MadeInputs& made, const InputsOptions& options,
                        const std::string& extension) {
  Manifest manifest{.generator = concat(kGenerator, ", seed ", options.seed),
                    .options = normalization_text(options.normalization),
                    .cases = {},
                    .alive = made.alive,
                    .equivalent = made.equivalent,
                    .alive_without_affine = made.alive_without_affine,
                    .same = made.same};
  const auto file = [&](const MadeTensor& tensor) { return tensor.info.name + extension; };
  for (const MadeCase& one : made.cases) {
    manifest.cases.push_back({.name = one.name,
                              .x = file(one.x),
                              .weight = file(one.weight),
                              .bias = file(one.bias),
                              .dy = one.dy ? std::optional(file(*one.dy)) : std::nullopt,
                              .purpose = one.purpose,
                              .kills = one.kills});
  }
  return manifest_json(manifest);
}

InputsOptions inputs_options(const Arguments& arguments) {
  check_quantization(arguments);
  InputsOptions options{.shape = arguments.made_shape.value_or(Shape{}),
                        .dtype = arguments.output.dtype.value_or(DType::float32),
                        .normalization = arguments.normalization.options,
                        .quantization = {},
                        .seed = arguments.seed,
                        .threads = arguments.work.threads};
  if (!arguments.quantization) return options;
  options.dtype = arguments.input.options.as.value_or(DType::float32);
  Plan plan;
  plan.out = *arguments.output.dtype;
  plan.rounding = options.dtype;
  options.quantization = quantization_of(arguments.quantization, plan);
  options.needs = quantized_rows(arguments.quantization);
  return options;
}

int inputs(const Arguments& arguments) {
  const std::string& path = arguments.output.path;
  const auto format = format_of_extension(path);
  const InputsOptions options = inputs_options(arguments);
  const bool is_file = format && !path.ends_with('/');
  check_replaced_manifest(is_file ? manifest_path(path)
                                  : (std::filesystem::path(path) / "manifest.json").string());
  const MadeInputs made = make_inputs(options);
  if (is_file) {
    write_file(made, options, path, format_row(*format));
  } else {
    write_folder(made, options, path);
  }
  if (!made.alive.empty()) {
    print_note(concat("these inputs leave alive: ", joined(made.alive, ", ")));
  }
  return 0;
}

}  // namespace lnorm::app
