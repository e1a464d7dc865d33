#pragma once

#include <functional>
#include <optional>
#include <string>

#include "arguments.hpp"
#include "lnorm/io/byte_sink.hpp"
#include "lnorm/report/reports.hpp"

namespace lnorm::app {

// Writes a report into a file, if it is named.
void save_report(const std::optional<std::string>& path,
                 const std::function<void(ByteSink& out)>& write);

// Writes it where --save-json and --save-junit say.
template <class Data>
void save_reports(const Arguments& arguments, const Data& data) {
  save_report(arguments.save_json, [&](ByteSink& out) { write_json(data, out); });
  save_report(arguments.save_junit, [&](ByteSink& out) { write_junit(data, out); });
}

// Writes it on standard output, unless --quiet is given.
void print_report(const Arguments& arguments, const std::function<void(ByteSink& out)>& write);

// How its text looks.
Style report_style(const Arguments& arguments);

}  // namespace lnorm::app
