#include "lnorm/io/npy/npy.hpp"

#include "fuzz/in_memory.hpp"
#include "fuzz/targets.hpp"
#include "lnorm/core/byte_order.hpp"
#include "lnorm/io/byte_source.hpp"
#include "lnorm/layout/reorder.hpp"

namespace {

using namespace fuzz;

struct NpyTensor : Tensor {  // whose elements are in C order
  bool as_in_the_file;
};

std::optional<NpyTensor> read(const Descriptor& from) {
  return unless_refused([&] {
    auto source = lnorm::open_npy(lnorm::open_file(from.path()), {});
    const bool in_c_order = source->info().order == lnorm::MemoryOrder::c;
    source = lnorm::gathered(std::move(source));
    return NpyTensor{{source->info(), support::text_of(read_all(*source))}, in_c_order};
  });
}

void make_native(Tensor& tensor) {
  lnorm::make_native(std::as_writable_bytes(std::span(tensor.elements)), tensor.info.dtype,
                     tensor.info.byte_order);
  tensor.info.byte_order = std::endian::native;
}

std::string written(const Tensor& tensor) {
  return file_of([&](lnorm::ByteSink& bytes) {
    put(*make_npy_sink(bytes, tensor.info), std::as_bytes(std::span(tensor.elements)));
  });
}

void check_npy_file(std::string_view bytes) {
  std::optional<NpyTensor> tensor = read(MemoryFile(bytes));
  if (bytes.size() <= kPipeBytes) {
    const auto piped = read(FullPipe(bytes));
    require(piped.has_value() == tensor.has_value(), "a pipe is read where a file is");
    if (tensor) {
      require(are_alike(piped->info, tensor->info), "a pipe has the header of the file");
      require(piped->elements == tensor->elements, "a pipe has the elements of the file");
    }
  }
  if (!tensor) return;
  require(!tensor->as_in_the_file || bytes.ends_with(tensor->elements),
          "the elements are what the file ends with");
  make_native(*tensor);
  auto again = read(MemoryFile(written(*tensor)));
  require(again.has_value(), "what was written is read");
  make_native(*again);
  require(are_alike(again->info, tensor->info), "the header comes back");
  require(again->elements == tensor->elements, "the elements come back");
}

std::optional<lnorm::TensorInfo> parse(std::string_view dict, bool python2_longs) {
  return unless_refused(
      [&] { return lnorm::parse_npy_dict("x.npy", dict, 10, python2_longs, {}); });
}

void check_dict(std::string_view dict) {
  const auto info = parse(dict, false);
  if (!info) return;
  const auto with_longs = parse(dict, true);
  require(with_longs && are_alike(*with_longs, *info), "a size needs no L");
  const std::string header = format_npy_header(*info);
  auto again = parse(std::string_view(header).substr(10), false);
  require(again.has_value(), "a header that was written is read");
  again->byte_order = info->byte_order;  // of what is written, always the same
  require(are_alike(*again, *info), "a header that was written says the same");
}

}  // namespace

int fuzz_npy(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes = bytes_of(data, size);
  check_npy_file(bytes);
  check_dict(bytes);
  return 0;
}
