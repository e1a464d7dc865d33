#include "program.hpp"

#include <new>
#include <variant>

#include "arguments.hpp"
#include "commands.hpp"
#include "complain.hpp"
#include "lnorm/core/error.hpp"

namespace lnorm::app {

namespace {

struct Run {
  int operator()(const ApplyArguments& arguments) const { return apply(arguments); }
  int operator()(const StatsArguments& arguments) const { return stats(arguments); }
  int operator()(const CompareArguments& arguments) const { return compare(arguments); }
  int operator()(const SoftmaxArguments& arguments) const { return softmax(arguments); }
  int operator()(const GradArguments& arguments) const { return grad(arguments); }
  int operator()(const ExplainArguments& arguments) const { return explain(arguments); }
  int operator()(const ShowArguments& arguments) const { return show(arguments); }
  int operator()(const ReportArguments& arguments) const { return report(arguments); }
  int operator()(const Done& done) const { return done.exit_status; }
};

}  // namespace

int run_program(int argc, const char* const* argv) {
  try {
    return std::visit(Run{}, parse_arguments(argc, argv));
  } catch (const ClosedPipe&) {
    return 0;
  } catch (const Error& error) {
    return complain(error.what(), error.hint());
  } catch (const std::bad_alloc&) {
    return complain("not enough memory");
  } catch (const std::exception& error) {
    return complain(error.what());
  }
}

}  // namespace lnorm::app
