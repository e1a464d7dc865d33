#include "lnorm/layout/spooled_tensor.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/io/raw_tensor.hpp"

namespace lnorm {

namespace {

class SpooledTensor final : public RandomAccessSource {
 public:
  SpooledTensor(TensorInfo info, std::string file_name, os::FileDescriptor file)
      : RandomAccessSource(std::move(info)),
        file_name_(std::move(file_name)),
        file_(std::move(file)) {}

  void read_at(std::int64_t offset, std::span<std::byte> to) const override {
    if (os::read_at(file_, to, offset, file_name_) < to.size()) {
      throw Error(concat(file_name_, ": has lost what was written to it"));
    }
  }

 private:
  std::string file_name_;
  os::FileDescriptor file_;
};

}  // namespace

TensorSpool::TensorSpool(TensorInfo info)
    : info_(std::move(info)), file_(os::create_nameless(file_name_)) {}

void TensorSpool::write_at(std::int64_t offset, std::span<const std::byte> elements) const {
  os::write_at(file_, elements, offset, file_name_);
}

void TensorSpool::write(std::span<const std::byte> encoded) {
  os::write_all(file_, encoded, file_name_);
}

std::unique_ptr<TensorSource> TensorSpool::source() {
  return std::make_unique<SpooledTensor>(info_, file_name_, std::move(file_));
}

std::unique_ptr<TensorSource> spooled(TensorSource& source) {
  constexpr std::int64_t kBlock = std::int64_t{1} << 20;
  TensorSpool spool(source.info());
  const std::int64_t bytes = data_bytes(source.info());
  std::vector<std::byte> block;
  for (std::int64_t done = 0; done < bytes; done += kBlock) {
    source.read(block, static_cast<std::size_t>(std::min(kBlock, bytes - done)));
    spool.write(block);
  }
  source.finish();
  return spool.source();
}

void encode_in_order(const TensorSource& source, TensorSink& sink,
                     const ForEachTile& for_each_tile) {
  constexpr std::int64_t kBlock = std::int64_t{128} << 10;
  const std::int64_t bytes = data_bytes(source.info());
  const auto item = static_cast<std::int64_t>(item_size(source.info().dtype));
  const auto encode = [&](std::int64_t number, TileBuffer& buffer) {
    const std::int64_t start = number * kBlock;
    buffer.rows.resize(static_cast<std::size_t>(std::min(kBlock, bytes - start)));
    source.read_at(start, buffer.rows);
    buffer.encoded = sink.encode(start / item, buffer.rows, buffer.text);
  };
  const auto write = [&](std::int64_t, TileBuffer& buffer) { sink.write(buffer.encoded); };
  for_each_tile((bytes + kBlock - 1) / kBlock, kBlock, encode, write);
}

}  // namespace lnorm
