#include "log_plan.hpp"

#include <string>

#include "lnorm/core/text.hpp"
#include "lnorm/pipeline/run.hpp"
#include "print_error.hpp"

namespace lnorm::app {

std::string ranks_text(const WorkArguments& work, bool are_distributed) {
  const int ranks = work.ranks->count();
  return ranks == 1 ? "" : concat(are_distributed ? ", " : ", 1 of ", ranks, " ranks");
}

void log_plan(const WorkArguments& work, const Plan& plan, const TensorSource& source,
              const TensorSink* sink, std::string_view kernel, bool others_are_distributed) {
  const Route& route = plan.route;
  const bool out_uses_temporary_file =
      sink != nullptr &&
      (sink->needs_prescan() || route.out.uses_temporary_file(sink->has_random_access()));
  const bool are_distributed = can_distribute(source, route.in) &&
                               (sink == nullptr || can_distribute(*sink, route.out)) &&
                               others_are_distributed;
  log_plan(work, plan,
           {route.in.uses_temporary_file(source.has_random_access()) || out_uses_temporary_file,
            are_distributed},
           kernel, sink);
}

void log_plan(const WorkArguments& work, const Plan& plan, Way way, std::string_view kernel,
              const TensorSink* sink) {
  if (!work.verbose) return;
  const Route& route = plan.route;
  const Tile tile = plan.first_tile();
  std::string line = route.in_parts ? concat("rows in parts of ", counted(tile.count, "element"))
                                    : concat("in blocks of ", counted(tile.rows, "row"));
  if (route.in_parts && tile.rows > 1) line += concat(", ", tile.rows, " rows at a time");
  line += concat(", ", counted(executor_for(plan, work.threads, sink).threads(), "thread"));
  if (!kernel.empty()) line += concat(", kernel ", kernel);
  line += ranks_text(work, way.are_distributed);
  if (way.uses_temporary_file) line += ", by way of a temporary file";
  if (!route.reason.empty()) line += concat(": ", route.reason);
  print_note(line);
}

}  // namespace lnorm::app
