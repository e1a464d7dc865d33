#include "lnorm/io/torch/torch.hpp"

#include <bit>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/io/byte_slice.hpp"
#include "lnorm/io/members.hpp"
#include "lnorm/io/raw_tensor.hpp"
#include "lnorm/io/torch/pickle_reader.hpp"
#include "lnorm/io/torch/strided_source.hpp"
#include "lnorm/io/torch/torch_tensors.hpp"

namespace lnorm {

namespace {

constexpr std::string_view kPickle = "/data.pkl";

// What a file of 20,000 tensors has is a tenth of it.
constexpr std::int64_t kMaxPickleBytes = std::int64_t{16} << 20;

// NAME, or nothing if the archive is none of PyTorch's.
std::optional<std::string> find_folder(const ZipArchive& archive) {
  for (std::size_t i = 0; i < archive.size(); ++i) {
    const std::string name = archive.member_name(i);
    if (name.find('/') == name.size() - std::min(name.size(), kPickle.size()) &&
        name.ends_with(kPickle)) {
      return name.substr(0, name.size() - kPickle.size());
    }
  }
  return std::nullopt;
}

// Whether the elements follow one another when axes are taken in an order, the fastest first.
bool is_contiguous(const StorageView& view, MemoryOrder order) {
  if (element_count(view.shape) == 0) return true;
  std::int64_t expected = 1;
  for (std::size_t i = 0; i < view.shape.size(); ++i) {
    const std::size_t axis = order == MemoryOrder::fortran ? i : view.shape.size() - 1 - i;
    if (view.shape[axis] != 1 && view.strides[axis] != expected) return false;
    expected *= view.shape[axis];
  }
  return true;
}

class TorchSet final : public TensorSet {
 public:
  explicit TorchSet(std::shared_ptr<const ZipArchive> archive)
      : TensorSet(archive->name()), archive_(std::move(archive)) {
    folder_ = find_folder(*archive_).value_or("");
    for (std::size_t i = 0; i < archive_->size(); ++i) {
      members_.emplace(archive_->member_name(i), i);
    }
    refuse_scripts();
    read_byte_order();
    const std::string bytes = read_small(kPickle.substr(1), kMaxPickleBytes);
    pickle_ = read_pickle(bytes, name(), is_torch_global);
    tensors_ = find_torch_tensors(pickle_, name());
    for (const NamedTensor& tensor : tensors_) {
      // A tensor may have many names.
      if (!places_.contains(tensor.value)) places_.emplace(tensor.value, check(tensor));
    }
  }

  std::size_t size() const override { return tensors_.size(); }
  std::string tensor_name(std::size_t index) const override { return tensors_[index].name; }

  TensorInfo info(std::size_t index) const override {
    return info_of(view(tensors_[index]), full_name(tensors_[index]));
  }

  std::unique_ptr<TensorSource> open(std::size_t index) const override {
    const StorageView view = this->view(tensors_[index]);
    TensorInfo info = info_of(view, full_name(tensors_[index]));
    const std::int64_t bytes = data_bytes(info);
    auto storage = ZipArchive::open(archive_, storage_member(view, info.name), info.name,
                                    ZipArchive::Sums::may_be_missing);
    if (!storage->has_random_access()) {
      throw Error(concat(printable(info.name), ": its storage is deflated, expected a stored one"));
    }
    if (!is_contiguous(view, info.order)) {
      return make_strided_source(std::move(storage), std::move(info), view.offset, view.strides);
    }
    if (bytes < view.storage_bytes) {
      const auto item = static_cast<std::int64_t>(item_size(view.dtype));
      storage = slice(std::move(storage), info.name, view.offset * item, bytes);
    }
    return make_raw_source(std::move(storage), std::move(info));
  }

  std::int64_t place(std::size_t index) const override { return places_.at(tensors_[index].value); }

 private:
  [[noreturn]] void fail(const std::string& what, std::string hint = {}) const {
    throw Error(concat(printable(name()), ": ", what), std::move(hint));
  }

  std::string full_name(const NamedTensor& tensor) const {
    return tensor.name.empty() ? name() : concat(name(), ':', tensor.name);
  }

  std::optional<std::size_t> find(std::string_view member) const {
    const auto found = members_.find(concat(folder_, '/', member));
    return found == members_.end() ? std::nullopt : std::optional(found->second);
  }

  void refuse_scripts() const {
    if (find("constants.pkl")) {
      fail("is a TorchScript archive, expected tensors of torch.save",
           "in Python: torch.save(torch.jit.load('x.pt').state_dict(), 'y.pt')");
    }
  }

  std::string read_small(std::string_view member, std::int64_t most) const {
    const auto index = find(member);
    if (!index) fail(concat("there is no member ", folder_, '/', member));
    const auto bytes = ZipArchive::open(archive_, *index, concat(name(), ':', member),
                                        ZipArchive::Sums::may_be_missing);
    const std::int64_t size = bytes->remaining().value();
    if (size > most) {
      fail(concat(member, " has ", counted(size, "byte"), ", expected at most ", most));
    }
    std::vector<std::byte> content;
    bytes->read(content, static_cast<std::size_t>(size));
    bytes->peek(1);  // checks the sum
    return {reinterpret_cast<const char*>(content.data()), content.size()};
  }

  // Older files do not tell: they are little-endian.
  void read_byte_order() {
    constexpr std::string_view kMember = "byteorder";
    constexpr std::int64_t kMax = 16;
    if (!find(kMember)) return;
    const std::string order = read_small(kMember, kMax);
    if (order != "little" && order != "big") {
      fail(concat("byteorder is '", printable(order), "', expected little or big"));
    }
    if (order == "big") byte_order_ = std::endian::big;
  }

  StorageView view(const NamedTensor& tensor) const {
    return read_torch_tensor(pickle_, tensor.value, full_name(tensor));
  }

  TensorInfo info_of(const StorageView& view, std::string name) const {
    TensorInfo info{std::move(name), view.dtype, view.shape, byte_order_};
    data_bytes(info);  // are not too many
    if (!is_contiguous(view, MemoryOrder::c) && is_contiguous(view, MemoryOrder::fortran)) {
      info.order = MemoryOrder::fortran;
    }
    return info;
  }

  std::size_t storage_member(const StorageView& view, const std::string& tensor) const {
    const auto member = find(concat("data/", view.storage));
    if (!member) {
      throw Error(concat(printable(tensor), ": there is no storage '", short_name(view.storage),
                         "' in the file"));
    }
    return *member;
  }

  // Returns the place of a tensor in the file.
  std::int64_t check(const NamedTensor& tensor) const {
    try {
      const StorageView view = this->view(tensor);
      const std::string name = full_name(tensor);
      info_of(view, name);
      const std::size_t member = storage_member(view, name);
      const std::int64_t size = archive_->member_bytes(member);
      if (size != view.storage_bytes) {
        throw Error(concat(printable(name), ": its storage '", short_name(view.storage), "' needs ",
                           counted(view.storage_bytes, "byte"), ", found ", size));
      }
      return archive_->place(member) +
             view.offset * static_cast<std::int64_t>(item_size(view.dtype));
    } catch (const UnsupportedDType&) {
      return 0;
    }
  }

  std::shared_ptr<const ZipArchive> archive_;
  std::string folder_;
  std::unordered_map<std::string, std::size_t> members_;
  std::endian byte_order_ = std::endian::little;
  Pickle pickle_;
  std::vector<NamedTensor> tensors_;
  std::unordered_map<PickleId, std::int64_t> places_;  // of the tensors in the file
};

}  // namespace

bool is_torch(const ZipArchive& archive) { return find_folder(archive).has_value(); }

std::unique_ptr<TensorSet> open_torch(std::shared_ptr<const ZipArchive> archive) {
  return std::make_unique<TorchSet>(std::move(archive));
}

}  // namespace lnorm
