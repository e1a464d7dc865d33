#include "saved_report.hpp"

namespace lnorm::app {

void save_report(const std::optional<std::string>& path,
                 const std::function<void(ByteSink& out)>& write) {
  if (!path) return;
  ByteSink out(*path);
  write(out);
  out.finish();
  out.commit();
}

void print_report(const std::function<void(ByteSink& out)>& write) {
  ByteSink out("-");
  out.outlive_reader();  // the exit status is still to be told
  write(out);
  out.finish();
  out.commit();
}

}  // namespace lnorm::app
