#include "saved_report.hpp"

#include "terminal.hpp"

namespace lnorm::app {

void save_report(const std::optional<std::string>& path,
                 const std::function<void(ByteSink& out)>& write) {
  if (!path) return;
  ByteSink out(*path);
  write(out);
  out.finish();
  out.commit();
}

void print_report(const Arguments& arguments, const std::function<void(ByteSink& out)>& write) {
  if (arguments.quiet) return;
  ByteSink out("-");
  out.outlive_reader();  // the exit status is still to be told
  write(out);
  out.finish();
  out.commit();
}

Style report_style(const Arguments& arguments) {
  Style style = output_style(arguments.color, Style::kAnyWidth);
  style.width = arguments.linewidth.value_or(style.width);
  return style;
}

}  // namespace lnorm::app
