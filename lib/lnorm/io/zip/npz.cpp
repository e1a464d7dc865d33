#include "lnorm/io/zip/npz.hpp"

#include <string_view>
#include <utility>
#include <vector>

#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/io/npy/npy.hpp"
#include "lnorm/io/tensor_set.hpp"
#include "lnorm/io/zip/zip_archive.hpp"

namespace lnorm {

namespace {

std::string label(std::string name) {
  constexpr std::string_view kExtension = ".npy";
  if (name.ends_with(kExtension)) name.resize(name.size() - kExtension.size());
  return name;
}

std::unique_ptr<ByteSource> open(const std::shared_ptr<const ZipArchive>& archive,
                                 std::size_t index) {
  return ZipArchive::open(archive, index,
                          concat(archive->name(), ':', label(archive->member_name(index))));
}

class NpzSet final : public TensorSet {
 public:
  NpzSet(std::unique_ptr<ByteSource> bytes, std::optional<DType> as)
      : TensorSet(bytes->name()),
        archive_(std::make_shared<const ZipArchive>(std::move(bytes))),
        as_(as) {}
  std::size_t size() const override { return archive_->size(); }
  std::string tensor_name(std::size_t index) const override {
    return label(archive_->member_name(index));
  }
  TensorInfo info(std::size_t index) const override {
    return read_npy_header(*lnorm::open(archive_, index), as_);
  }
  std::unique_ptr<TensorSource> open(std::size_t index) const override {
    return open_npy(lnorm::open(archive_, index), as_);
  }

 private:
  std::shared_ptr<const ZipArchive> archive_;
  std::optional<DType> as_;
};

}  // namespace

std::unique_ptr<TensorSet> open_npz(std::unique_ptr<ByteSource> bytes, std::optional<DType> as) {
  return std::make_unique<NpzSet>(std::move(bytes), as);
}

}  // namespace lnorm
