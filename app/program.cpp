#include "program.hpp"

#include <new>
#include <variant>

#include "commands.hpp"
#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"
#include "print_error.hpp"

namespace lnorm::app {

namespace {

// What several ranks do together; the rest is for rank 0 alone.
struct Run {
  Ranks& ranks;

  int operator()(ApplyArguments& arguments) const { return together(apply, arguments); }
  int operator()(StatsArguments& arguments) const { return together(stats, arguments); }
  int operator()(CompareArguments& arguments) const { return together(compare, arguments); }
  int operator()(SoftmaxArguments& arguments) const { return together(softmax, arguments); }
  int operator()(GradArguments& arguments) const { return together(grad, arguments); }
  int operator()(const ExplainArguments& arguments) const { return alone(explain, arguments); }
  int operator()(const ShowArguments& arguments) const { return alone(show, arguments); }
  int operator()(const ReportArguments& arguments) const { return alone(report, arguments); }
  int operator()(const Done& done) const { return done.exit_status; }

 private:
  template <class Arguments>
  int together(int (*command)(const Arguments&), Arguments& arguments) const {
    arguments.work.ranks = &ranks;
    const int status = command(arguments);
    // What is found of tensors, rank 0 tells. The status of another one is that of a rank.
    return ranks.is_first() ? status : 0;
  }
  template <class Arguments>
  int alone(int (*command)(const Arguments&), const Arguments& arguments) const {
    if constexpr (requires { arguments.work; }) {
      if (arguments.work.verbose && ranks.count() > 1) {
        print_note(concat("1 of ", ranks.count(), " ranks"));
      }
    }
    return ranks.is_first() ? command(arguments) : 0;
  }
};

}  // namespace

Ending run_command(int argc, const char* const* argv, const Program& program, Ranks& ranks) {
  try {
    Arguments arguments = parse_arguments(argc, argv, program);
    check_same(ranks, "the command line", {argv + 1, argv + argc}, "word");
    return {std::visit(Run{ranks}, arguments), "", ""};
  } catch (const ClosedPipe&) {
    return {};
  } catch (const RankFailure&) {
    return {2, "", ""};
  } catch (const Error& error) {
    return {2, error.what(), error.hint()};
  } catch (const std::bad_alloc&) {
    return {2, "not enough memory", ""};
  } catch (const std::exception& error) {
    return {2, error.what(), ""};
  }
}

int run_program(int argc, const char* const* argv) {
  const Ending ending = run_command(argc, argv, kLnorm, sole_rank());
  return ending.message.empty() ? ending.status : print_error(ending.message, ending.hint);
}

}  // namespace lnorm::app
