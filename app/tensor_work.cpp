#include "tensor_work.hpp"

#include "lnorm/core/text.hpp"
#include "print_error.hpp"

namespace lnorm::app {

std::string ranks_text(const WorkArguments& work, bool are_distributed) {
  const int ranks = work.ranks->count();
  return ranks == 1 ? "" : concat(are_distributed ? ", " : ", 1 of ", ranks, " ranks");
}

RunOptions TensorWork::begin(const Plan& plan, const TensorSource& source, const TensorSink* sink,
                             std::string_view kernel, bool others_take_parts) {
  const Route& route = plan.route;
  const bool out_uses_temporary_file =
      sink != nullptr &&
      (sink->needs_prescan() || route.out.uses_temporary_file(sink->has_random_access()));
  const bool takes_parts = others_take_parts && can_distribute(source, route.in) &&
                           (sink == nullptr || can_distribute(*sink, route.out));
  return begin(plan,
               {route.in.uses_temporary_file(source.has_random_access()) || out_uses_temporary_file,
                takes_parts},
               source.info(), kernel, sink);
}

RunOptions TensorWork::begin(const Plan& plan, Way way, const TensorInfo& x,
                             std::string_view kernel, const TensorSink* sink) {
  if (job_.verbose) log(plan, way, kernel, sink);
  line_.emplace(progress_, x);
  return {job_.threads, line_->callback(), &ranks_};
}

void TensorWork::log(const Plan& plan, Way way, std::string_view kernel,
                     const TensorSink* sink) const {
  const Route& route = plan.route;
  const Tile tile = plan.first_tile();
  std::string line = route.in_parts ? concat("rows in parts of ", counted(tile.count, "element"))
                                    : concat("in blocks of ", counted(tile.rows, "row"));
  if (route.in_parts && tile.rows > 1) line += concat(", ", tile.rows, " rows at a time");
  line += concat(", ", counted(executor_for(plan, job_.threads, sink).threads(), "thread"));
  if (!kernel.empty()) line += concat(", kernel ", kernel);
  line += ranks_text(job_, way.takes_parts && ranks_.count() > 1);
  if (way.uses_temporary_file) line += ", by way of a temporary file";
  if (!route.reason.empty()) line += concat(": ", route.reason);
  print_note(line);
}

}  // namespace lnorm::app
