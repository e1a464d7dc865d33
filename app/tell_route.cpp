#include "tell_route.hpp"

#include <string>

#include "complain.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/pipeline/run.hpp"

namespace lnorm::app {

std::string ranks_text(const WorkArguments& work, bool are_dealt) {
  const int ranks = work.ranks->count();
  return ranks == 1 ? "" : concat(are_dealt ? ", " : ", 1 of ", ranks, " ranks");
}

void tell_route(const WorkArguments& work, const Plan& plan, const TensorSource& source,
                const TensorSink* sink, std::string_view kernel, bool others_are_dealt) {
  const Route& route = plan.route;
  const bool out_makes_detour =
      sink != nullptr && (sink->surveys() || route.out.makes_detour(sink->has_positions()));
  const bool are_dealt = can_deal(source, route.in) &&
                         (sink == nullptr || can_deal(*sink, route.out)) && others_are_dealt;
  tell_route(work, plan,
             {route.in.makes_detour(source.has_positions()) || out_makes_detour, are_dealt}, kernel,
             sink);
}

void tell_route(const WorkArguments& work, const Plan& plan, Way way, std::string_view kernel,
                const TensorSink* sink) {
  if (!work.verbose) return;
  const Route& route = plan.route;
  const Tile tile = plan.first_tile();
  std::string line = route.in_parts ? concat("rows in parts of ", counted(tile.count, "element"))
                                    : concat("in blocks of ", counted(tile.rows, "row"));
  if (route.in_parts && tile.rows > 1) line += concat(", ", tile.rows, " rows at a time");
  line += concat(", ", counted(crew_of(plan, work.threads, sink).threads(), "thread"));
  if (!kernel.empty()) line += concat(", kernel ", kernel);
  line += ranks_text(work, way.are_dealt);
  if (way.makes_detour) line += ", by way of a temporary file";
  if (!route.reason.empty()) line += concat(": ", route.reason);
  tell(line);
}

}  // namespace lnorm::app
