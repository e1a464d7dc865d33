#include "lnorm/io/gguf/gguf.hpp"

#include "fuzz/in_memory.hpp"
#include "fuzz/targets.hpp"
#include "support/sets.hpp"

namespace {

using namespace fuzz;

// What another reader finds in the header of a file that was accepted, which is not cut off.
class GgufClaims {
 public:
  explicit GgufClaims(std::string_view bytes) : bytes_(bytes) {
    at_ = 8;
    const std::uint64_t tensors = number(8);
    for (std::uint64_t pairs = number(8); pairs > 0; --pairs) {
      const std::string_view key = text();
      const std::uint64_t type = number(4);
      if (key == "general.alignment") alignment_ = support::little_endian(bytes_.substr(at_), 4);
      pass(type);
    }
    for (std::uint64_t i = 0; i < tensors; ++i) {
      Tensor& tensor = tensors_.emplace_back();
      tensor.name = text();
      for (std::uint64_t ndim = number(4); ndim > 0; --ndim) {
        tensor.shape.insert(tensor.shape.begin(), static_cast<std::int64_t>(number(8)));
      }
      tensor.type = number(4);
      tensor.offset = number(8);
    }
    while (at_ % alignment_ != 0) ++at_;
  }

  struct Tensor {
    std::string name;
    lnorm::Shape shape;
    std::uint64_t type = 0;
    std::uint64_t offset = 0;
  };
  const std::vector<Tensor>& tensors() const { return tensors_; }
  std::size_t data() const { return at_; }

 private:
  std::uint64_t number(std::size_t size) {
    at_ += size;
    return support::little_endian(bytes_.substr(at_ - size), size);
  }
  std::string_view text() {
    const auto size = static_cast<std::size_t>(number(8));
    at_ += size;
    return bytes_.substr(at_ - size, size);
  }
  void pass(std::uint64_t type) {
    constexpr std::size_t kSizes[]{1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    if (type == 8) {
      text();
    } else if (type == 9) {
      const std::uint64_t item = number(4);
      const std::uint64_t length = number(8);
      if (kSizes[item] > 0) at_ += static_cast<std::size_t>(length) * kSizes[item];
      for (std::uint64_t i = 0; kSizes[item] == 0 && i < length; ++i) pass(item);
    } else {
      at_ += kSizes[type];
    }
  }

  std::string_view bytes_;
  std::size_t at_ = 0;
  std::uint64_t alignment_ = 32;
  std::vector<Tensor> tensors_;
};

// Empty for a type that is not read.
std::string_view dtype_of(std::uint64_t type) {
  switch (type) {
    case 0:
      return "float32";
    case 1:
      return "float16";
    case 24:
      return "int8";
    case 25:
      return "int16";
    case 26:
      return "int32";
    case 27:
      return "int64";
    case 28:
      return "float64";
    case 30:
      return "bfloat16";
    default:
      return "";
  }
}

}  // namespace

int fuzz_gguf(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes = bytes_of(data, size);
  const auto opened = unless_refused([&] { return lnorm::open_gguf(memory_source(bytes)); });
  if (!opened) return 0;
  const lnorm::TensorSet& set = **opened;
  const GgufClaims claims(bytes);
  require(set.size() == claims.tensors().size(), "all tensors of the header are listed");
  for (std::size_t i = 0; i < set.size(); ++i) {
    const GgufClaims::Tensor& claim = claims.tensors()[i];
    const lnorm::Member listed = set.describe(i);
    require(listed.name == claim.name, "it is listed by its name");
    require(listed.shape == claim.shape, "it is listed with its shape");
    const auto elements = unless_refused([&] { return lnorm::read_all(*set.open(i)); });
    const std::string_view dtype = dtype_of(claim.type);
    require(elements.has_value() == !dtype.empty(), "what is read depends on the type alone");
    if (!elements) continue;
    require(listed.dtype == dtype, "it is listed with its dtype");
    const std::string found = support::text_of(*elements);
    const auto begin = claims.data() + static_cast<std::size_t>(claim.offset);
    require(found.empty() || found == bytes.substr(begin, found.size()),
            "it has the bytes at its offset");
  }
  return 0;
}
