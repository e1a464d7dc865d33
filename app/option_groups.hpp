#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "arguments.hpp"

// The options that commands share: each means the same wherever it stands.
namespace lnorm::app {

// An option whose text parse(text) turns into a value. CLI11's own conversion of numbers goes by way of long
// double, which would round eps twice.
CLI::Option* add_parsed(CLI::App& app, const std::string& names,
                        std::function<void(const std::string&)> parse, const std::string& help,
                        const std::string& type);

// The same for a tensor or a file, which is taken as it is named.
void add_text(CLI::App& app, const std::string& names, std::optional<std::string>& value,
              const std::string& help, const std::string& type);

// The same for an option that may be given several times.
void add_repeated(CLI::App& app, const std::string& name,
                  const std::function<void(const std::string&)>& parse, const std::string& help,
                  const std::string& type);

void add_as(CLI::App& app, std::optional<DType>& as);
void add_input(CLI::App& app, InputArguments& input);
void add_rows(CLI::App& app, std::optional<RowRange>& rows);
using SetAxes = std::function<void(const NormalizedAxes&)>;
void add_axes(CLI::App& app, const SetAxes& set);
// The same, but --axis is that one axis.
void add_softmax_axes(CLI::App& app, const SetAxes& set);
// The backward pass has no bias.
enum class Pass { forward, backward };
void add_normalization(CLI::App& app, NormalizationArguments& normalization,
                       Pass pass = Pass::forward);
void add_output(CLI::App& app, OutputArguments& output);
// The same without the path.
void add_output_format(CLI::App& app, OutputArguments& output);
void add_print(CLI::App& app, PrintArguments& print, std::string_view default_threshold);
void add_worst_by(CLI::App& app, std::optional<WorstBy>& by);
void add_color(CLI::App& app, When& color);
void add_progress(CLI::App& app, When& progress);
void add_threads(CLI::App& app, int& threads);
void add_work(CLI::App& app, WorkArguments& work);

}  // namespace lnorm::app
