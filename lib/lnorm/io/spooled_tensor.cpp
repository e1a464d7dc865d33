#include "lnorm/io/spooled_tensor.hpp"

#include <algorithm>

#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/io/os.hpp"

namespace lnorm {

namespace {

class SpooledTensor final : public TensorSource {
 public:
  explicit SpooledTensor(TensorSource& source)
      : TensorSource(source.info()), file_(os::create_nameless(file_name_)) {
    constexpr std::int64_t kBlock = std::int64_t{1} << 20;
    std::vector<std::byte> block;
    const std::int64_t bytes =
        element_count(info().shape) * static_cast<std::int64_t>(item_size(info().dtype));
    for (std::int64_t done = 0; done < bytes; done += kBlock) {
      source.read(block, static_cast<std::size_t>(std::min(kBlock, bytes - done)));
      os::write_all(file_, block, file_name_);
    }
    source.finish();
  }

  void read(std::vector<std::byte>& to, std::size_t bytes) override {
    to.resize(bytes);
    read_at(next_, to);
    next_ += static_cast<std::int64_t>(bytes);
  }

  void skip(std::int64_t bytes) override { next_ += bytes; }

  bool has_positions() const noexcept override { return true; }

  void read_at(std::int64_t position, std::span<std::byte> to) const override {
    if (os::read_at(file_, to, position, file_name_) < to.size()) {
      throw Error(concat(file_name_, ": has lost what was written to it"));
    }
  }

  void finish() override {}

 private:
  std::string file_name_;
  os::FileDescriptor file_;
  std::int64_t next_ = 0;
};

}  // namespace

std::unique_ptr<TensorSource> with_positions(std::unique_ptr<TensorSource> source) {
  if (source->has_positions()) return source;
  return std::make_unique<SpooledTensor>(*source);
}

}  // namespace lnorm
