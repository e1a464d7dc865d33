#include <algorithm>
#include <memory>
#include <variant>
#include <vector>

#include "commands.hpp"
#include "each_tensor.hpp"
#include "lnorm/core/byte_order.hpp"
#include "lnorm/core/error.hpp"
#include "lnorm/core/shape.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/io/byte_sink.hpp"
#include "lnorm/io/members.hpp"
#include "lnorm/io/open_tensor.hpp"
#include "lnorm/layout/reorder.hpp"
#include "member_table.hpp"
#include "progress_line.hpp"
#include "terminal.hpp"

namespace lnorm::app {

namespace {

void show_tensor(TensorSource& source, const ShowArguments& arguments, ByteSink& out) {
  const TensorInfo& info = source.info();
  TorchText text(info.dtype, info.shape, arguments.print.options);
  const auto size = static_cast<std::int64_t>(item_size(info.dtype));
  const std::int64_t elements = element_count(info.shape);
  {
    ProgressLine progress(arguments.progress, info);
    const Progress report = progress.callback();
    constexpr std::int64_t kBlock = 1 << 20;
    std::vector<std::byte> block;
    for (std::int64_t done = 0; done < elements;) {
      const std::int64_t unshown = std::min(text.unshown(), kBlock);
      const std::int64_t count = unshown > 0 ? unshown : std::min(text.shown(), kBlock);
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
  if (arguments.header || out.is_terminal()) {
    out.write(output_style(arguments.color)
                  .heading(concat(printable(info.name), ": ", name(info.dtype), ", shape ",
                                  to_string(info.shape))));
    out.write("\n");
  }
  out.write(text.str());
  out.write("\n");
}

}  // namespace

int show(const ShowArguments& arguments) {
  const InputArguments& input = arguments.input;
  std::variant<TensorSequence, Members> opened;
  // What is for a tensor does nothing to a list of them.
  if (arguments.header || !arguments.print.given.empty()) {
    opened = open_tensors(input.name, input.options);
  } else {
    opened = open_tensors_or_members(input.name, input.options);
  }
  if (const auto* const members = std::get_if<Members>(&opened)) {
    ByteSink out("-");
    write_member_table(*members, out);
    out.finish();
    out.commit();
    return 0;
  }
  return for_each_tensor(std::get<TensorSequence>(std::move(opened)), {kStandardOutput},
                         [&](OpenedTensor& tensor, Outputs& outputs) {
                           check_as(input.options.as, tensor.source->info());
                           show_tensor(*gathered(std::move(tensor.source)), arguments,
                                       outputs[0].bytes());
                         });
}

}  // namespace lnorm::app
