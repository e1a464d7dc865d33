#include <algorithm>
#include <variant>
#include <vector>

#include "commands.hpp"
#include "companions.hpp"
#include "lnorm/core/axes.hpp"
#include "lnorm/core/byte_order.hpp"
#include "lnorm/core/error.hpp"
#include "lnorm/core/shape.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/io/byte_sink.hpp"
#include "lnorm/io/open_tensor.hpp"
#include "lnorm/layout/reorder.hpp"
#include "lnorm/layout/spooled_tensor.hpp"
#include "lnorm/pipeline/executor.hpp"
#include "lnorm/report/numbers.hpp"
#include "lnorm/report/torch_text.hpp"
#include "terminal.hpp"

namespace lnorm::app {

namespace {

void write_heading(const TensorInfo& info, const Arguments& arguments, ByteSink& out) {
  if (!arguments.header && !out.is_terminal()) return;
  out.write(output_style(arguments.color)
                .heading(concat(printable(info.name), ": ", name(info.dtype), ", shape ",
                                to_string(whole_of(info).shape),
                                info.slice ? ", " + rows_text(*info.slice) : "")));
  out.write("\n");
}

constexpr std::int64_t kShowBlock = 1 << 20;  // elements

// The elements go through a temporary file, since what is written depends on all of them.
void show_long_tensor(TensorSource& source, const Arguments& arguments, TensorSink& text,
                      ByteSink& out) {
  const TensorInfo& info = source.info();
  const std::int64_t elements = element_count(info.shape);
  TensorSpool spool(info);
  {
    ProgressLine progress(arguments.work.progress, info);
    const Progress report = progress.callback();
    std::vector<std::byte> block;
    for (std::int64_t done = 0; done < elements;) {
      const std::int64_t count = std::min(elements - done, kShowBlock);
      source.read(block, static_cast<std::size_t>(count) * item_size(info.dtype));
      make_native(block, info.dtype, info.byte_order);
      text.prescan(block);
      spool.write(block);
      done += count;
      if (report) report(done);
    }
    source.finish();
  }
  write_heading(info, arguments, out);
  text.begin_writing();
  encode_in_order(*spool.source(), text, for_each_tile(arguments.work.threads));
  text.finish();
}

void show_tensor(TensorSource& source, const Arguments& arguments, ByteSink& out) {
  const TensorInfo& info = source.info();
  const auto sink = make_text_sink(out, info, arguments.output.print.options);
  if (sink->needs_prescan()) return show_long_tensor(source, arguments, *sink, out);
  TorchText text(info.dtype, info.shape, arguments.output.print.options);
  const auto size = static_cast<std::int64_t>(item_size(info.dtype));
  const std::int64_t elements = element_count(info.shape);
  {
    ProgressLine progress(arguments.work.progress, info);
    const Progress report = progress.callback();
    std::vector<std::byte> block;
    for (std::int64_t done = 0; done < elements;) {
      const std::int64_t unshown = std::min(text.unshown(), kShowBlock);
      const std::int64_t count = unshown > 0 ? unshown : std::min(text.shown(), kShowBlock);
      if (unshown > 0) {
        source.skip(count * size);
        text.skip(count);
      } else {
        source.read(block, static_cast<std::size_t>(count * size));
        make_native(block, info.dtype, info.byte_order);
        text.add(block);
      }
      done += count;
      if (report) report(done);
    }
    source.finish();
  }
  write_heading(info, arguments, out);
  out.write(text.str());
  out.write("\n");
}

// Whether it is what several tensors are named in, if only one is there.
bool lists(const Selection& selection) {
  if (selection.several) return true;
  const Selected& tensor = selection.tensors.front();
  const bool has_name = !tensor.set->tensor_name(tensor.index).empty();
  return selection.is_file && has_name && tensor.format != Format::pb;  // which has one always
}

void list(const Selection& selection, Report report, ByteSink& out) {
  std::vector<Member> members;
  for (const Selected& tensor : selection.tensors) {
    members.push_back(tensor.set->describe(tensor.index));
    members.back().name = tensor.title;
  }
  selection.finish();
  write_report(report, std::tie(members), out);
}

}  // namespace

int show(const Arguments& arguments) {
  const InputArguments& input = arguments.input;
  const Inputs inputs = open_inputs(arguments);
  const auto* const selection = std::get_if<Selection>(&inputs);
  // What is for a tensor does nothing to a list of them.
  const bool is_for_tensor =
      arguments.header || !arguments.output.print.given.empty() || input.rows;
  int status = 0;
  ByteSink out("-");
  if (selection != nullptr && !is_for_tensor && lists(*selection)) {
    list(*selection, arguments.report, out);
  } else {
    if (selection != nullptr) only_tensor(*selection);
    if (arguments.report != Report::text) {
      const std::string_view option = arguments.report == Report::json ? "--json" : "--csv";
      const std::string& word = input.names.front();
      throw Error(concat(option, " lists the tensors of a file that holds several, ",
                         printable(word), " is one tensor"),
                  concat("lnorm stats ", shell_word(word), ' ', option, " has its statistics"));
    }
    status = look_at_each_by(
        inputs, arguments,
        [&](const TensorInfo& x, const InputName&) { check_as(input.options.as, x); },
        [&](OpenedTensor& tensor, const InputName&, TensorWork&) {
          show_tensor(*gathered(std::move(tensor.source)), arguments, out);
          if (tensor.format == Format::jsonl) out.flush();
        });
  }
  out.finish();
  out.commit();
  return status;
}

}  // namespace lnorm::app
