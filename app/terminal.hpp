#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>

#include "arguments.hpp"
#include "lnorm/core/error.hpp"
#include "lnorm/core/tensor_info.hpp"
#include "lnorm/pipeline/run.hpp"
#include "lnorm/report/reports.hpp"

namespace lnorm::app {

// What standard output can show: color as asked for, by default on a terminal unless NO_COLOR is set
// [no-color.org]; UTF-8 by the locale; on a terminal the width that COLUMNS says, or its own, or 80; elsewhere the
// given one.
Style output_style(When color, int width_elsewhere = Style::kUsualWidth);

// Writes a report in a format. data: a tuple. text: what write_text takes after the data.
template <class... Data, class... Text>
void write_report(Report format, const std::tuple<Data...>& data, ByteSink& out,
                  const Text&... text) {
  const auto write = [&](const auto&... all) {
    switch (format) {
      case Report::text:
        return write_text(all..., text..., out);
      case Report::json:
        return write_json(all..., out);
      case Report::csv:
        return write_csv(all..., out);
    }
  };
  std::apply(write, data);
}

// What CapturedOutputs calls standard error.
inline constexpr const char* kStandardError = "standard error";

// Writes "lnorm: message" to standard error.
void print_note(std::string_view message);

// What to try: the hint of the error, and the option that is its remedy.
std::string hint_of(const Error& error);

// Writes the message, and a second line with the hint if there is one.
// Returns the exit status of work that could not be done.
int print_error(std::string_view message, std::string_view hint = {});
int print_error(const Error& error);

// One line on standard error that tells how far the work is, once it has taken a second. The line goes with
// the last element, or with the object.
class ProgressLine {
 public:
  // when: automatic is on a terminal.
  ProgressLine(When when, const TensorInfo& tensor);
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  ~ProgressLine();

  // The loop may call it as long as this object lives. It is empty if nothing is to be shown.
  Progress callback();

 private:
  using Clock = std::chrono::steady_clock;

  void show(std::int64_t elements);
  void clear();

  bool wanted_;
  std::string name_;
  std::int64_t total_;
  Clock::time_point begin_ = Clock::now();
  Clock::time_point next_;
  bool drawn_ = false;
};

}  // namespace lnorm::app
