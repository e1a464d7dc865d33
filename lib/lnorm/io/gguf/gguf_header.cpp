#include "lnorm/io/gguf/gguf_header.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "lnorm/core/byte_order.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/io/members.hpp"

namespace lnorm {

namespace {

// Elements of ggml's types stand in blocks. Types that ggml has taken back keep their numbers, and have no blocks here.
struct GgmlType {
  std::string_view name;
  std::int64_t block_elements = 0;
  std::int64_t block_bytes = 0;
};

// [ggml.h, ggml_type; ggml-common.h, the sizes of the blocks]
constexpr std::array kGgmlTypes{
    GgmlType{"F32", 1, 4},
    GgmlType{"F16", 1, 2},
    GgmlType{"Q4_0", 32, 18},
    GgmlType{"Q4_1", 32, 20},
    GgmlType{"Q4_2"},
    GgmlType{"Q4_3"},
    GgmlType{"Q5_0", 32, 22},
    GgmlType{"Q5_1", 32, 24},
    GgmlType{"Q8_0", 32, 34},
    GgmlType{"Q8_1", 32, 36},
    GgmlType{"Q2_K", 256, 84},
    GgmlType{"Q3_K", 256, 110},
    GgmlType{"Q4_K", 256, 144},
    GgmlType{"Q5_K", 256, 176},
    GgmlType{"Q6_K", 256, 210},
    GgmlType{"Q8_K", 256, 292},
    GgmlType{"IQ2_XXS", 256, 66},
    GgmlType{"IQ2_XS", 256, 74},
    GgmlType{"IQ3_XXS", 256, 98},
    GgmlType{"IQ1_S", 256, 50},
    GgmlType{"IQ4_NL", 32, 18},
    GgmlType{"IQ3_S", 256, 110},
    GgmlType{"IQ2_S", 256, 82},
    GgmlType{"IQ4_XS", 256, 136},
    GgmlType{"I8", 1, 1},
    GgmlType{"I16", 1, 2},
    GgmlType{"I32", 1, 4},
    GgmlType{"I64", 1, 8},
    GgmlType{"F64", 1, 8},
    GgmlType{"IQ1_M", 256, 56},
    GgmlType{"BF16", 1, 2},
    GgmlType{"Q4_0_4_4", 32, 18},
    GgmlType{"Q4_0_4_8", 32, 18},
    GgmlType{"Q4_0_8_8", 32, 18},
    GgmlType{"TQ1_0", 256, 54},
    GgmlType{"TQ2_0", 256, 66},
    GgmlType{"IQ4_NL_4_4", 32, 18},
    GgmlType{"IQ4_NL_4_8", 32, 18},
    GgmlType{"IQ4_NL_8_8", 32, 18},
    GgmlType{"MXFP4", 32, 17},
    GgmlType{"NVFP4", 64, 36},
    GgmlType{"Q1_0", 128, 18},
};

GgmlType type_row(std::uint32_t type) {
  return type < kGgmlTypes.size() ? kGgmlTypes[type] : GgmlType{};
}

// The types of values. These are the bytes of those that have a fixed size; the others have 0.
constexpr std::array<std::int64_t, 13> kValueBytes{1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
constexpr std::uint32_t kU32 = 4;
constexpr std::uint32_t kString = 8;
constexpr std::uint32_t kArray = 9;

// What a header may hold at most, so that the worst of them costs less than 256 MiB.
constexpr std::uint64_t kMaxTensors = 1'000'000;
constexpr std::size_t kMaxNameBytes = std::size_t{48} << 20;  // of all names
constexpr std::uint64_t kMaxName = 65535;                     // the specification's limit of keys
constexpr std::uint32_t kMaxDims = 4;
constexpr int kMaxDepth = 4;

// The fewest bytes that each of these takes.
constexpr std::int64_t kLeastPair = 8 + 4 + 1;
constexpr std::int64_t kLeastTensor = 8 + 4 + 4 + 8;
constexpr std::int64_t kLeastString = 8;
constexpr std::int64_t kLeastArray = 4 + 8;

class HeaderReader {
 public:
  explicit HeaderReader(const ByteSource& bytes)
      : bytes_(bytes), size_(bytes.remaining().value()) {}

  std::vector<GgufTensor> read() {
    check_start();
    const auto tensors = number<std::uint64_t>("the number of tensors");
    check_count(tensors, "tensors", kLeastTensor);
    if (tensors > kMaxTensors) fail(concat(tensors, " tensors, expected at most ", kMaxTensors));
    const auto pairs = number<std::uint64_t>("the number of key-value pairs");
    check_count(pairs, "key-value pairs", kLeastPair);
    for (std::uint64_t i = 0; i < pairs; ++i) pass_pair();
    std::vector<GgufTensor> all;
    std::size_t name_bytes = 0;
    for (std::uint64_t i = 0; i < tensors; ++i) {
      all.push_back(read_tensor());
      name_bytes += all.back().name.size();
      if (name_bytes > kMaxNameBytes) fail("names of more than 48 MiB in all");
    }
    field_ = at_;  // what is wrong from here on is said of the header's end
    check_names(all);
    place(all);
    return all;
  }

 private:
  [[noreturn]] void fail(std::string_view what) const {
    bytes_.fail(concat("GGUF header, byte ", field_, ": ", what));
  }
  [[noreturn]] void fail(const GgufTensor& tensor, std::string_view what) const {
    fail(concat("tensor '", short_name(tensor.name), "': ", what));
  }

  std::int64_t left() const { return size_ - at_; }

  // The bytes of a field, which begins here.
  std::string_view next(std::int64_t count, std::string_view what) {
    field_ = at_;
    if (left() < count) {
      fail(concat(what, " is cut off: needs ", counted(count, "byte"), ", found ", left()));
    }
    const std::int64_t begin = at_ - buffer_at_;
    if (begin < 0 || begin + count > std::ssize(buffer_)) {
      buffer_.resize(static_cast<std::size_t>(std::clamp<std::int64_t>(left(), count, 1 << 16)));
      buffer_.resize(bytes_.read_at(at_, std::as_writable_bytes(std::span(buffer_))));
      buffer_at_ = at_;
      if (std::ssize(buffer_) < count) fail(concat(what, " is cut off"));  // the file has shrunk
    }
    at_ += count;
    return std::string_view(buffer_).substr(static_cast<std::size_t>(field_ - buffer_at_),
                                            static_cast<std::size_t>(count));
  }

  template <class Number>
  Number number(std::string_view what) {
    return static_cast<Number>(from_little_endian(next(sizeof(Number), what)));
  }

  // Each of so many things takes some bytes of the file.
  void check_count(std::uint64_t count, std::string_view things, std::int64_t least_bytes) const {
    const auto most = static_cast<std::uint64_t>(left() / least_bytes);
    if (count <= most) return;
    fail(concat("found a count of ", count, ' ', things, ", expected at most ", most, " in the ",
                counted(left(), "byte"), " that are left"));
  }

  void pass(std::uint64_t count, std::string_view things, std::int64_t bytes) {
    check_count(count, things, bytes);
    at_ += static_cast<std::int64_t>(count) * bytes;
  }

  void check_start() {
    const std::string_view magic = next(4, "the first word");
    if (magic != "GGUF") fail(concat("found '", printable(magic), "', expected 'GGUF'"));
    const auto version = number<std::uint32_t>("the version");
    if (version == 2 || version == 3) return;
    const std::uint32_t swapped = swap_bytes(version);
    if (swapped == 2 || swapped == 3) fail("a big-endian file, expected a little-endian one");
    fail(concat("version ", version, ", expected 2 or 3"));
  }

  std::string text(std::string_view what) {
    const auto length = number<std::uint64_t>(what);
    if (length > kMaxName) {
      fail(concat(what, " of ", length, " bytes, expected at most ", kMaxName));
    }
    return std::string(next(static_cast<std::int64_t>(length), what));
  }

  void pass_pair() {
    const std::string key = text("a key");
    const auto type = number<std::uint32_t>("the type of a value");
    if (key != "general.alignment") return pass_value(type, 1);
    if (type != kU32) fail(concat("general.alignment is of type ", type, ", expected u32"));
    if (alignment_) fail("general.alignment is there twice");
    alignment_ = number<std::uint32_t>("general.alignment");
    if (*alignment_ < 8 || !std::has_single_bit(*alignment_)) {
      fail(concat("general.alignment is ", *alignment_,
                  ", expected a power of two that is at least 8"));
    }
  }

  // depth: that an array has here.
  void pass_value(std::uint32_t type, int depth) {
    if (type == kString) {
      pass(number<std::uint64_t>("a string"), "bytes of a string", 1);
    } else if (type == kArray) {
      pass_array(depth);
    } else {
      next(bytes_of_value(type), "a value");
    }
  }

  std::int64_t bytes_of_value(std::uint32_t type) const {
    if (type >= kValueBytes.size()) fail(concat("a value of type ", type, ", expected 0 to 12"));
    return kValueBytes[type];
  }

  void pass_array(int depth) {
    if (depth > kMaxDepth) {
      field_ = at_;
      fail(concat("arrays in arrays, expected a depth of at most ", kMaxDepth));
    }
    const auto type = number<std::uint32_t>("the type of an array");
    const std::int64_t bytes = bytes_of_value(type);
    const auto length = number<std::uint64_t>("an array");
    if (bytes > 0) return pass(length, "elements of an array", bytes);
    check_count(length, "elements of an array", type == kString ? kLeastString : kLeastArray);
    for (std::uint64_t i = 0; i < length; ++i) pass_value(type, depth + 1);
  }

  GgufTensor read_tensor() {
    GgufTensor tensor;
    tensor.name = text("the name of a tensor");
    if (!is_utf8(tensor.name)) fail("the name of a tensor is not UTF-8");
    const auto ndim = number<std::uint32_t>("the number of dimensions");
    if (ndim > kMaxDims) fail(tensor, concat(ndim, " dimensions, expected at most ", kMaxDims));
    for (std::uint32_t i = 0; i < ndim; ++i) {
      const auto extent = number<std::uint64_t>("a size");
      if (extent > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
        fail(tensor, concat("a size of ", extent, ", expected at most 2^63 - 1"));
      }
      tensor.shape.push_back(static_cast<std::int64_t>(extent));
    }
    std::reverse(tensor.shape.begin(), tensor.shape.end());
    tensor.type = number<std::uint32_t>("the type of a tensor");
    tensor.size = byte_size(tensor);
    const auto offset = number<std::uint64_t>("the offset of a tensor");
    if (offset > static_cast<std::uint64_t>(size_)) {
      fail(tensor, concat("offset ", offset, ", which is beyond the file of ", size_, " bytes"));
    }
    if (offset % alignment() != 0) {
      fail(tensor, concat("offset ", offset, ", expected a multiple of ", alignment()));
    }
    tensor.begin = static_cast<std::int64_t>(offset);
    return tensor;
  }

  // Rows are whole blocks.
  std::optional<std::int64_t> byte_size(const GgufTensor& tensor) const {
    const GgmlType row = type_row(tensor.type);
    const bool is_known = row.block_bytes != 0;
    Shape factors = tensor.shape;
    if (is_known) {
      if (factors.empty()) factors.push_back(1);
      if (factors.back() % row.block_elements != 0) {
        fail(tensor,
             concat("rows of ", counted(factors.back(), "element"), ", expected a multiple of the ",
                    row.block_elements, " of a block of ", row.name));
      }
      factors.back() /= row.block_elements;
      factors.push_back(row.block_bytes);
    }
    const auto bytes = checked_product(factors);
    if (!bytes) {
      fail(tensor, concat("shape ", to_string(tensor.shape), " needs more than 2^63 - 1 bytes"));
    }
    return is_known ? bytes : std::nullopt;
  }

  void check_names(const std::vector<GgufTensor>& tensors) const {
    std::unordered_set<std::string_view> names(tensors.size());
    for (const GgufTensor& tensor : tensors) {
      if (!names.insert(tensor.name).second) {
        fail(concat("tensor '", short_name(tensor.name), "' is there twice"));
      }
    }
  }

  std::uint32_t alignment() const { return alignment_.value_or(32); }

  // Makes offsets in the file of those in the data.
  void place(std::vector<GgufTensor>& tensors) const {
    const std::int64_t step = alignment();
    const std::int64_t start = std::min(size_, (at_ + step - 1) / step * step);
    const std::int64_t room = size_ - start;
    std::vector<const GgufTensor*> by_place;
    for (GgufTensor& tensor : tensors) {
      const std::int64_t size = tensor.size.value_or(0);
      if (tensor.begin > room || size > room - tensor.begin) {
        fail(concat("tensor '", short_name(tensor.name), "' of ", counted(size, "byte"),
                    " at offset ", tensor.begin, " goes beyond the file, which has ",
                    counted(room, "byte"), " of data"));
      }
      tensor.begin += start;
      by_place.push_back(&tensor);
    }
    const auto key = [](const GgufTensor* tensor) {
      return std::pair(tensor->begin, tensor->begin + tensor->size.value_or(0));
    };
    std::sort(by_place.begin(), by_place.end(),
              [&](const auto* a, const auto* b) { return key(a) < key(b); });
    for (std::size_t i = 1; i < by_place.size(); ++i) {
      const GgufTensor& before = *by_place[i - 1];
      if (before.begin + before.size.value_or(0) <= by_place[i]->begin) continue;
      fail(concat("tensors '", short_name(before.name), "' and '", short_name(by_place[i]->name),
                  "' overlap"));
    }
  }

  const ByteSource& bytes_;
  std::int64_t size_;
  std::int64_t at_ = 0;
  std::int64_t field_ = 0;  // where the latest field begins, for messages
  std::string buffer_;      // some bytes of the file
  std::int64_t buffer_at_ = 0;
  std::optional<std::uint32_t> alignment_;
};

}  // namespace

std::string ggml_type_name(std::uint32_t type) {
  const std::string_view name = type_row(type).name;
  return name.empty() ? concat("type ", type) : std::string(name);
}

const DTypeRow* find_ggml_dtype(std::uint32_t type) {
  return find_dtype(&DTypeRow::ggml, type_row(type).name);
}

std::vector<GgufTensor> read_gguf_header(const ByteSource& bytes) {
  return HeaderReader(bytes).read();
}

}  // namespace lnorm
