#include "lnorm/io/zip/npz.hpp"

#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/io/npy/npy.hpp"
#include "lnorm/io/raw_tensor.hpp"
#include "lnorm/io/zip/zip_writer.hpp"

namespace lnorm {

namespace {

class NpzSet final : public TensorSet {
 public:
  NpzSet(std::shared_ptr<const ZipArchive> archive, std::optional<DType> as)
      : TensorSet(archive->name()),
        archive_(std::move(archive)),
        as_(as),
        infos_(archive_->size()) {
    std::unordered_set<std::string> names;
    for (std::size_t i = 0; i < size(); ++i) {
      if (names.insert(tensor_name(i)).second) continue;
      fail(concat("two members have the name '", printable(tensor_name(i)), "'"));
    }
  }

  std::size_t size() const override { return archive_->size(); }

  std::string tensor_name(std::size_t index) const override {
    constexpr std::string_view kExtension = ".npy";
    std::string name = archive_->member_name(index);
    if (name.ends_with(kExtension)) name.resize(name.size() - kExtension.size());
    return name;
  }

  TensorInfo info(std::size_t index) const override {
    std::optional<TensorInfo>& info = infos_[index];
    if (!info) info = read_npy_header(*open_member(index), as_);
    return *info;
  }

  std::unique_ptr<TensorSource> open(std::size_t index) const override {
    return open_npy(open_member(index), as_);
  }

  std::int64_t place(std::size_t index) const override { return archive_->place(index); }

 private:
  std::unique_ptr<ByteSource> open_member(std::size_t index) const {
    return archive_->open(index, concat(name(), ':', tensor_name(index)));
  }

  std::shared_ptr<const ZipArchive> archive_;
  std::optional<DType> as_;
  mutable std::vector<std::optional<TensorInfo>> infos_;  // that have been asked for
};

// It has no random access: the sum of a member's bytes is that of their order.
class MemberSink final : public TensorSink {
 public:
  MemberSink(ZipWriter& archive, DType dtype) : archive_(archive), dtype_(dtype) {}

  std::span<const std::byte> encode(std::int64_t, std::span<const std::byte> elements,
                                    std::string& buffer) const override {
    return encode_raw(elements, dtype_, buffer);
  }
  void write(std::span<const std::byte> encoded) override { archive_.write(encoded); }
  void finish() override { archive_.end(); }

 private:
  ZipWriter& archive_;
  DType dtype_;
};

class NpzSetSink final : public TensorSetSink {
 public:
  explicit NpzSetSink(ByteSink& bytes) : bytes_(bytes), archive_(bytes) {}

  std::unique_ptr<TensorSink> begin(const TensorInfo& info) override {
    if (info.name.empty()) {
      throw Error(
          concat(printable(bytes_.name()), ": a tensor has no name, expected one for .npz"));
    }
    const std::string header = format_npy_header(info);
    archive_.begin(info.name + ".npy", std::ssize(header) + data_bytes(info));
    archive_.write(std::as_bytes(std::span(header)));
    return std::make_unique<MemberSink>(archive_, info.dtype);
  }

  void finish() override { archive_.finish(); }

 private:
  ByteSink& bytes_;
  ZipWriter archive_;
};

}  // namespace

std::unique_ptr<TensorSet> open_npz(std::shared_ptr<const ZipArchive> archive,
                                    std::optional<DType> as) {
  return std::make_unique<NpzSet>(std::move(archive), as);
}

std::unique_ptr<TensorSetSink> make_npz_set_sink(ByteSink& bytes) {
  return std::make_unique<NpzSetSink>(bytes);
}

}  // namespace lnorm
