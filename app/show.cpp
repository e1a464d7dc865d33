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
#include "lnorm/io/raw_tensor.hpp"
#include "lnorm/io/tensor_set.hpp"
#include "lnorm/layout/reorder.hpp"
#include "lnorm/report/member_table.hpp"
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

// Members as a set that can be listed.
class MemberList final : public TensorSet {
 public:
  MemberList(const std::string& name, Members members)
      : TensorSet(name), members_(std::move(members)) {}

  std::size_t size() const override { return members_.size; }
  std::string tensor_name(std::size_t index) const override { return members_.at(index).name; }
  TensorInfo info(std::size_t) const override { return {}; }
  std::unique_ptr<TensorSource> open(std::size_t) const override { return nullptr; }
  Member describe(std::size_t index) const override {
    Member member = members_.at(index);
    const auto dtype = parse_dtype(member.dtype);
    if (member.shape && dtype) member.bytes = data_bytes({"", *dtype, *member.shape});
    return member;
  }

 private:
  Members members_;
};

void list(const TensorSet& set, Report report) {
  ByteSink out("-");
  switch (report) {
    case Report::text:
      write_member_text(set, out);
      break;
    case Report::json:
      write_member_json(set, out);
      break;
    case Report::csv:
      write_member_csv(set, out);
      break;
  }
  out.finish();
  out.commit();
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
  if (auto* const members = std::get_if<Members>(&opened)) {
    list(MemberList(input.name, std::move(*members)), arguments.report);
    return 0;
  }
  if (arguments.report != Report::text) {
    const std::string_view option = arguments.report == Report::json ? "--json" : "--csv";
    throw Error(concat(option, " lists the tensors of a file that holds several, ",
                       printable(input.name), " is one tensor"),
                concat("lnorm stats ", shell_word(input.name), ' ', option, " has its statistics"));
  }
  return for_each_tensor(std::get<TensorSequence>(std::move(opened)), {kStandardOutput},
                         [&](OpenedTensor& tensor, Outputs& outputs) {
                           check_as(input.options.as, tensor.source->info());
                           show_tensor(*gathered(std::move(tensor.source)), arguments,
                                       outputs[0].bytes());
                         });
}

}  // namespace lnorm::app
