#include "each_tensor.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/io/members.hpp"
#include "lnorm/io/raw_tensor.hpp"
#include "lnorm/layout/row_slice.hpp"
#include "terminal.hpp"

namespace lnorm::app {

namespace {

// A line of progress would be in the way of a result on the terminal.
When progress_beside(const Outputs& outputs, const Arguments& arguments) {
  return outputs.fill_terminal() ? When::never : arguments.work.progress;
}

// The rows of an input that a command sees.
void cut(OpenedTensor& tensor, const Arguments& arguments, const Work& work) {
  tensor.source = grouped(std::move(tensor.source), arguments.normalization.options.axes);
  tensor.source = chosen(work.rows, std::move(tensor.source));
}

int for_each_line(const TensorLines& next, Outputs& outputs, const Arguments& arguments,
                  const Work& work) {
  int status = 0;
  std::string title;
  // Returns whether there was a line.
  const auto do_next = [&] {
    title = arguments.input.names.front();
    std::optional<OpenedTensor> tensor = next();
    if (!tensor) return false;
    title = tensor->name;
    const InputName name{tensor->name, tensor->name, tensor->captures, true};
    cut(*tensor, arguments, work);
    std::vector<TensorInfo> results = work.plan(tensor->source->info(), name);
    for (TensorInfo& result : results) result.name = name.name;
    outputs.begin(*tensor, results);
    TensorWork here(arguments.work, *arguments.work.ranks, progress_beside(outputs, arguments));
    work.run(*tensor, name, here);
    outputs.flush();
    return true;
  };
  for (bool goes_on = true; goes_on;) {
    try {
      goes_on = do_next();
    } catch (const SystemError&) {
      throw;
    } catch (const Error& error) {
      if (!arguments.input.keep_going) throw;
      status = print_error(error);
      if (work.failed) work.failed(title, error);
    }
  }
  outputs.commit();
  return status;
}

// They come as they are listed; but a pipe gives its tensors in one order alone.
std::vector<Selected> in_order(const Selection& selection) {
  std::vector<Selected> tensors = selection.tensors;
  for (auto first = tensors.begin(); first != tensors.end();) {
    const auto end = std::find_if(first, tensors.end(),
                                  [&](const Selected& other) { return other.set != first->set; });
    if (first->set->is_pipe()) {
      std::sort(first, end, [](const Selected& a, const Selected& b) {
        return a.set->place(a.index) < b.set->place(b.index);
      });
    }
    first = end;
  }
  return tensors;
}

class Loop {
 public:
  Loop(const Selection& selection, Outputs& outputs, const Arguments& arguments, const Work& work)
      : selection_(selection),
        outputs_(outputs),
        arguments_(arguments),
        ranks_(*arguments.work.ranks),
        work_(work),
        tensors_(in_order(selection)) {}

  int run() {
    plan_all();
    is_planned_ = true;
    if (arguments_.output.planned != nullptr) {
      if (infos_.size() != 1) throw Error("results are described for one input, found several");
      *arguments_.output.planned = infos_.front();
      return 0;
    }
    check_same(ranks_, selection_.name, identities_, "tensor");
    if (status_ != 0 && tensors_.empty()) return status_;
    if (selection_.several) {
      outputs_.announce(selection_, infos_);
      if (outputs_.keep_names() && !arguments_.input.keep_going) check_names();
    }
    const bool distributes = selection_.several && all_of(ranks_, outputs_.have_random_access());
    const WorkDistribution distribution(ranks_, distributes ? work_.deal : Deal::together, bytes_);
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      attempt(tensors_[i], [&] {
        Ranks* const ranks = distribution.ranks_of(i);
        ranks != nullptr ? do_tensor(i, *ranks) : skip_tensor(i);
        ++done_;
      });
    }
    if (status_ != 0 && done_ == 0) return status_;
    if (status_ == 0) selection_.finish();
    outputs_.commit();
    return status_;
  }

 private:
  void do_tensor(std::size_t i, Ranks& ranks) {
    OpenedTensor tensor = open_tensor(tensors_[i]);
    cut(tensor, arguments_, work_);
    outputs_.write_alone(ranks.count() == 1);
    outputs_.begin(tensor, infos_[i]);
    TensorWork here(arguments_.work, ranks, progress_beside(outputs_, arguments_));
    work_.run(tensor, name_of(tensors_[i]), here);
  }

  void skip_tensor(std::size_t i) {
    outputs_.write_alone(false);
    outputs_.begin({nullptr, tensors_[i].format, tensors_[i].name, {}, "", ""}, infos_[i]);
    outputs_.skip();
  }

  InputName name_of(const Selected& tensor) const {
    return {tensor.name, tensor.title, tensor.captures, selection_.several};
  }

  TensorInfo info_of(const Selected& tensor) const {
    try {
      return tensor.set->info(tensor.index);
    } catch (const SystemError&) {
      throw;
    } catch (const Error& error) {
      if (tensors_.size() == 1 || arguments_.input.keep_going) throw;
      check_others(tensor, error);
      throw with_way_on(error);
    }
  }

  // Throws if no other tensor can be read either: the first error that says what to do.
  void check_others(const Selected& tensor, const Error& its) const {
    std::optional<Error> telling;
    for (const Selected& other : tensors_) {
      if (other.set == tensor.set && other.index == tensor.index) continue;
      try {
        other.set->info(other.index);
        return;
      } catch (const Error& error) {
        if (!telling && !hint_of(error).empty()) telling = error;
      }
    }
    throw Error(telling ? *telling : its);
  }

  void plan_all() {
    std::vector<Selected> fit;
    for (const Selected& tensor : tensors_) {
      attempt(tensor, [&] {
        const TensorInfo info =
            chosen(work_.rows, grouped(info_of(tensor), arguments_.normalization.options.axes));
        std::vector<TensorInfo> results = work_.plan(info, name_of(tensor));
        for (TensorInfo& result : results) result.name = tensor.name;
        if (ranks_.count() > 1) identities_.push_back(concat(tensor.title, ": ", identity(info)));
        bytes_.push_back(data_bytes(info));
        infos_.push_back(std::move(results));
        fit.push_back(tensor);
      });
    }
    tensors_ = std::move(fit);
  }

  // Before any of them is written.
  void check_names() const {
    std::map<std::string_view, const Selected*> seen;
    for (const Selected& tensor : tensors_) {
      const auto [place, is_new] = seen.emplace(tensor.name, &tensor);
      if (is_new) continue;
      throw Error(concat(printable(tensor.title), ": its result is called '",
                         printable(tensor.name), "', as is that of ",
                         printable(place->second->title), ", expected names that differ"),
                  "-o FILE takes the result of one of them");
    }
  }

  // An error is that of one tensor, with two exceptions. Once there are outputs, a SystemError may be about these. While
  // several ranks work, the others do not know of an error.
  template <class Attempt>
  void attempt(const Selected& tensor, Attempt attempt) {
    try {
      attempt();
    } catch (const SystemError& error) {
      if (is_planned_) throw;
      tell_or_throw(tensor, error);
    } catch (const Error& error) {
      if (is_planned_ && ranks_.count() > 1) throw;
      tell_or_throw(tensor, error);
    }
  }

  // In a handler.
  void tell_or_throw(const Selected& tensor, const Error& error) {
    if (!arguments_.input.keep_going || !selection_.several) throw;
    status_ = print_error(error);
    if (work_.failed) work_.failed(tensor.title, error);
  }

  const Selection& selection_;
  Outputs& outputs_;
  const Arguments& arguments_;
  Ranks& ranks_;
  const Work& work_;
  std::vector<Selected> tensors_;
  std::vector<std::vector<TensorInfo>> infos_;  // of tensors_: what each output gets
  std::vector<std::int64_t> bytes_;             // of tensors_
  std::size_t done_ = 0;
  std::vector<std::string> identities_;  // of tensors_, as all ranks are to have them
  bool is_planned_ = false;
  int status_ = 0;
};

}  // namespace

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

RowChoice rows_in(const RowRange& range, const TensorInfo& x, const NormalizedAxes& axes) {
  RowChoice choice{resolve_axes(x, axes)};
  const std::int64_t rows = element_count(row_shape(x.shape, choice.axes));
  const auto from_start = [&](std::int64_t row) {
    return row < 0 ? std::max<std::int64_t>(0, row + rows) : row;
  };
  choice.first = std::min(rows, from_start(range.first.value_or(0)));
  const std::int64_t end = std::min(rows, from_start(range.end.value_or(rows)));
  choice.count = std::max<std::int64_t>(0, end - choice.first);
  return choice;
}

ChooseRows rows_in(const std::optional<RowRange>& range, const NormalizedAxes& axes) {
  if (!range) return {};
  return [range, &axes](const TensorInfo& x) { return rows_in(*range, x, axes); };
}

TensorInfo chosen(const ChooseRows& choose, const TensorInfo& x) {
  if (!choose) return x;
  const RowChoice rows = choose(x);
  return slice_info(x, rows.axes, rows.first, rows.count);
}

std::unique_ptr<TensorSource> chosen(const ChooseRows& choose, std::unique_ptr<TensorSource> x) {
  if (!choose) return x;
  const RowChoice rows = choose(x->info());
  return rows_of(std::move(x), rows.axes, rows.first, rows.count);
}

NamedTensors named(const Selection& selection) {
  NamedTensors tensors{selection.name, {}};
  tensors.names.reserve(selection.tensors.size());
  for (const Selected& tensor : selection.tensors) tensors.names.push_back(tensor.title);
  return tensors;
}

int for_each_tensor(const Inputs& inputs, Outputs& outputs, const Arguments& arguments, Work work) {
  if (!work.rows) work.rows = rows_in(arguments.input.rows, arguments.normalization.options.axes);
  if (const auto* const lines = std::get_if<TensorLines>(&inputs)) {
    return for_each_line(*lines, outputs, arguments, work);
  }
  return Loop(std::get<Selection>(inputs), outputs, arguments, work).run();
}

void check_named(const Inputs& inputs) {
  const auto* const selection = std::get_if<Selection>(&inputs);
  if (selection == nullptr || !selection->several) return;
  if (!selection->is_file && !selection->tensors.empty()) return;
  try {
    only_tensor(*selection);
  } catch (const Error& error) {
    if (selection->tensors.empty() || selection->name.ends_with(kCutLiteral)) throw;
    const std::string hint = hint_of(error);
    throw Error(error.what(), concat(hint, hint.empty() ? "" : ", or ",
                                     "all of them: ", member_word(selection->name, "*")));
  }
}

Error with_way_on(const Error& error) {
  return hint_of(error).empty() ? Error(error.what(), "--keep-going does the others") : error;
}

void check_as(std::optional<DType> as, const TensorInfo& x) {
  if (!as || x.dtype == *as) return;
  throw Error(concat(printable(x.name), ": is ", name(x.dtype), ", which --as ", name(*as),
                     " does not change"),
              "convert --dtype writes another dtype");
}

void check_empty_rows(const Plan& plan, const std::string& name, std::string_view what) {
  constexpr std::int64_t kMax = std::int64_t{1} << 24;
  if (plan.row_length > 0 || plan.rows <= kMax) return;
  throw Error(concat(printable(name), ": ", what, ' ', plan.rows,
                     " rows of no elements, expected at most ", kMax));
}

}  // namespace lnorm::app
