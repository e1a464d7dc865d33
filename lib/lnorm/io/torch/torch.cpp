#include "lnorm/io/torch/torch.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lnorm/core/error.hpp"
#include "lnorm/core/tensor_info.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/io/byte_slice.hpp"
#include "lnorm/io/byte_source.hpp"
#include "lnorm/io/members.hpp"
#include "lnorm/io/memory_tensor.hpp"
#include "lnorm/io/raw_tensor.hpp"
#include "lnorm/io/tensor_source.hpp"
#include "lnorm/io/torch/pickle_reader.hpp"
#include "lnorm/io/torch/torch_tensors.hpp"

namespace lnorm {

namespace {

constexpr std::int64_t kMaxPiece = std::int64_t{128} << 10;

// What a call to the system costs, in bytes that are read for nothing.
constexpr std::int64_t kCall = 2048;

// Successive indices of an axis. Steps are in bytes.
struct Axis {
  std::int64_t extent;
  std::int64_t from_step;  // in the storage
  std::int64_t to_step;    // in what is read
};

// Some indices of each axis, those farthest apart in the storage first.
using Box = std::vector<Axis>;

// From the first byte of a box to behind its last one, in the storage.
std::int64_t span_of(std::span<const Axis> box, std::int64_t item) {
  std::int64_t span = item;
  for (const Axis& axis : box) span += (axis.extent - 1) * axis.from_step;
  return span;
}

void copy_items(const std::byte* from, std::int64_t from_step, std::byte* to, std::int64_t to_step,
                std::int64_t count, std::int64_t item) {
  if (from_step == item && to_step == item) {
    std::memcpy(to, from, static_cast<std::size_t>(count * item));
    return;
  }
  const auto copy = [&](auto size) {
    for (std::int64_t i = 0; i < count; ++i) {
      std::memcpy(to + i * to_step, from + i * from_step, size);
    }
  };
  // The compiler knows what to do with a constant.
  if (item == 4) return copy(std::integral_constant<std::size_t, 4>{});
  if (item == 2) return copy(std::integral_constant<std::size_t, 2>{});
  if (item == 8) return copy(std::integral_constant<std::size_t, 8>{});
  copy(std::integral_constant<std::size_t, 1>{});
}

void copy_box(std::span<const Axis> box, const std::byte* from, std::byte* to, std::int64_t item) {
  if (box.empty()) return copy_items(from, item, to, item, 1, item);
  const Axis& axis = box[0];
  if (box.size() == 1) {
    return copy_items(from, axis.from_step, to, axis.to_step, axis.extent, item);
  }
  for (std::int64_t i = 0; i < axis.extent; ++i) {
    copy_box(box.subspan(1), from + i * axis.from_step, to + i * axis.to_step, item);
  }
}

// A view of stored elements, in C order: element (i, j, ...) is number offset + i * strides[0] + j * strides[1]
// + ... of storage, none of which is behind its end. strides are not negative. storage: has_random_access(). What
// lies close together is read at once, in pieces of at most 128 KiB.
class StridedSource final : public RandomAccessSource {
 public:
  StridedSource(std::shared_ptr<const ByteSource> storage, TensorInfo tensor, std::int64_t offset,
                const std::vector<std::int64_t>& strides)
      : RandomAccessSource(std::move(tensor)),
        storage_(std::move(storage)),
        item_(static_cast<std::int64_t>(item_size(info().dtype))),
        offset_(offset * item_) {
    // Axes that follow one another without a gap are one.
    std::int64_t to_step = item_;
    const Shape& shape = info().shape;
    for (std::size_t i = shape.size(); i-- > 0;) {
      if (shape[i] == 1) continue;
      const std::int64_t from_step = strides[i] * item_;
      if (!axes_.empty() && from_step == axes_.back().from_step * axes_.back().extent) {
        axes_.back().extent *= shape[i];
      } else {
        axes_.push_back({shape[i], from_step, to_step});
      }
      to_step *= shape[i];
    }
    std::reverse(axes_.begin(), axes_.end());
  }

  void read_at(std::int64_t offset, std::span<std::byte> to) const override {
    if (is_contiguous()) return read_storage(offset_ + offset, to);
    std::vector<std::byte> piece;
    const auto bytes = static_cast<std::int64_t>(to.size());
    read_range(axes_, offset, bytes, offset_, to.data(), piece);
  }

  std::unique_ptr<TensorSource> without_strides(bool from_storage) const override {
    const std::int64_t first = from_storage ? 0 : offset_;
    const bool is_other = from_storage ? offset_ > 0 : !is_contiguous();
    if (!is_other || first + data_bytes(info()) > storage_->remaining().value_or(0)) return nullptr;
    std::vector<std::int64_t> strides = c_strides(info());
    for (std::int64_t& stride : strides) stride /= item_;
    return std::make_unique<StridedSource>(storage_, info(), first / item_, strides);
  }

 private:
  bool is_contiguous() const {
    return axes_.empty() || (axes_.size() == 1 && axes_.front().from_step == item_);
  }

  // Bytes of the elements that axes number, in C order, as boxes: what is left of an index of the first axis,
  // whole indices, and the start of another one.
  void read_range(std::span<const Axis> axes, std::int64_t first, std::int64_t bytes,
                  std::int64_t from, std::byte* to, std::vector<std::byte>& piece) const {
    if (bytes == 0) return;
    if (axes.empty()) return read_storage(from + first, {to, static_cast<std::size_t>(bytes)});
    const Axis& axis = axes[0];
    std::int64_t index = first / axis.to_step;
    const std::int64_t into = first % axis.to_step;
    const auto part = [&](std::int64_t start, std::int64_t count) {
      read_range(axes.subspan(1), start, count, from + index * axis.from_step, to, piece);
      to += count;
      bytes -= count;
      ++index;
    };
    if (into > 0) part(into, std::min(bytes, axis.to_step - into));
    const std::int64_t whole = bytes / axis.to_step;
    if (whole > 0) {
      Box box(axes.begin(), axes.end());
      box[0].extent = whole;
      std::stable_sort(box.begin(), box.end(),
                       [](const Axis& a, const Axis& b) { return a.from_step > b.from_step; });
      read_box(box, from + index * axis.from_step, to, piece);
      to += whole * axis.to_step;
      bytes -= whole * axis.to_step;
      index += whole;
    }
    if (bytes > 0) part(0, bytes);
  }

  // It takes as many indices of the first axis at a time as lie within a piece; if not even one does, one after another.
  void read_box(std::span<const Axis> box, std::int64_t from, std::byte* to,
                std::vector<std::byte>& piece) const {
    if (box.empty()) return read_piece(box, from, to, piece);
    const Axis& axis = box[0];
    const std::span<const Axis> rest = box.subspan(1);
    const std::int64_t one = span_of(rest, item_);
    std::int64_t count = 1;
    if (axis.from_step <= one + kCall && one <= kMaxPiece) {
      count = axis.from_step == 0 ? axis.extent : 1 + (kMaxPiece - one) / axis.from_step;
    }
    Box part(box.begin(), box.end());
    for (std::int64_t i = 0; i < axis.extent; i += count) {
      part[0].extent = std::min(count, axis.extent - i);
      const std::int64_t part_from = from + i * axis.from_step;
      std::byte* const part_to = to + i * axis.to_step;
      if (count > 1) {
        read_piece(part, part_from, part_to, piece);
      } else {
        read_box(rest, part_from, part_to, piece);
      }
    }
  }

  void read_piece(std::span<const Axis> box, std::int64_t from, std::byte* to,
                  std::vector<std::byte>& piece) const {
    piece.resize(static_cast<std::size_t>(span_of(box, item_)));
    read_storage(from, piece);
    copy_box(box, piece.data(), to, item_);
  }

  void read_storage(std::int64_t from, std::span<std::byte> to) const {
    if (storage_->read_at(from, to) < to.size()) {
      throw Error(concat(printable(info().name), ": the data is cut off"));
    }
  }

  std::shared_ptr<const ByteSource> storage_;
  std::int64_t item_;
  std::int64_t offset_;     // in bytes
  std::vector<Axis> axes_;  // in C order
};

constexpr std::string_view kPickle = "/data.pkl";

// What a file of 20,000 tensors has is a tenth of it.
constexpr std::int64_t kMaxPickleBytes = std::int64_t{16} << 20;

// NAME, or nothing if the archive is none of PyTorch's.
std::optional<std::string> find_folder(const ZipArchive& archive) {
  for (std::size_t i = 0; i < archive.size(); ++i) {
    const std::string& name = archive.member_name(i);
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
    if (find("constants.pkl")) {
      fail("is a TorchScript archive, expected tensors of torch.save",
           hint_about(name(),
                      "in Python: torch.save(torch.jit.load('FILE').state_dict(), 'FILE.pt')"));
    }
    read_byte_order();
    const std::string bytes = read_small(kPickle.substr(1), kMaxPickleBytes);
    pickle_ = read_pickle(bytes, name());
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
    auto storage = archive_->open(storage_member(view, info.name), info.name,
                                  ZipArchive::Sums::may_be_missing);
    if (!storage->has_random_access()) {
      throw Error(concat(printable(info.name), ": its storage is deflated, expected a stored one"));
    }
    const std::int64_t bytes = data_bytes(info);
    const bool is_whole = bytes == view.storage_bytes;
    const bool is_part = !is_whole && info.order == MemoryOrder::c;
    if (bytes > 0 && (is_part || !is_contiguous(view, info.order))) {
      return std::make_unique<StridedSource>(std::move(storage), std::move(info), view.offset,
                                             view.strides);
    }
    if (!is_whole) {
      const auto item = static_cast<std::int64_t>(item_size(view.dtype));
      storage = slice(std::move(storage), info.name, view.offset * item, bytes);
    }
    return make_raw_source(std::move(storage), std::move(info));
  }

  std::int64_t place(std::size_t index) const override { return places_.at(tensors_[index].value); }

 private:
  std::string full_name(const NamedTensor& tensor) const {
    return tensor.name.empty() ? name() : concat(name(), ':', tensor.name);
  }

  std::optional<std::size_t> find(std::string_view member) const {
    const auto found = members_.find(concat(folder_, '/', member));
    return found == members_.end() ? std::nullopt : std::optional(found->second);
  }

  std::string read_small(std::string_view member, std::int64_t most) const {
    const auto index = find(member);
    if (!index) fail(concat("there is no member ", folder_, '/', member));
    const auto bytes =
        archive_->open(*index, concat(name(), ':', member), ZipArchive::Sums::may_be_missing);
    const std::int64_t size = bytes->remaining().value();
    if (size > most) {
      fail(concat(member, " has ", counted(size, "byte"), ", expected at most ", most));
    }
    std::vector<std::byte> content;
    bytes->read(content, static_cast<std::size_t>(size));
    bytes->peek(1);  // checks the sum
    return std::string(as_text(content));
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
    return read_torch_tensor(pickle_, tensor.value, full_name(tensor), name());
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
