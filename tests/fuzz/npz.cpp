#include "lnorm/io/zip/npz.hpp"

#include <algorithm>
#include <span>
#include <vector>

#include "fuzz/in_memory.hpp"
#include "fuzz/targets.hpp"
#include "lnorm/core/error.hpp"
#include "lnorm/io/npy/npy.hpp"
#include "lnorm/io/raw_tensor.hpp"
#include "lnorm/io/zip/zip_archive.hpp"
#include "support/zip.hpp"

namespace {

using namespace fuzz;

// An archive is opened for each of its members several times.
constexpr std::size_t kMaxOpened = 4;
// What inflates to more, and is not looked at.
constexpr std::size_t kMaxContent = 65536;

struct Tensor {
  lnorm::TensorInfo info;
  std::string elements;
};

template <class Bytes>
std::string text(const Bytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Nothing where open refuses, or what it has opened.
template <class Open>
std::optional<Tensor> read(Open open) {
  try {
    const std::unique_ptr<lnorm::TensorSource> source = open();
    const auto bytes = read_all(*source);
    require(static_cast<std::int64_t>(bytes.size()) == lnorm::data_bytes(source->info()),
            "there are as many elements as the header says");
    return Tensor{source->info(), text(bytes)};
  } catch (const lnorm::Error&) {
    return std::nullopt;
  }
}

std::optional<Tensor> read_npy(std::string_view bytes) {
  return read([&] {
    return lnorm::open_npy(std::make_unique<MemorySource>(bytes), lnorm::DType::bfloat16);
  });
}

std::optional<Tensor> read_member(const lnorm::TensorSet& set, std::size_t index) {
  return read([&] { return set.open(index); });
}

// Nothing where it is refused.
std::unique_ptr<lnorm::TensorSet> open_set(std::string_view bytes, std::optional<lnorm::DType> as) {
  try {
    return lnorm::open_npz(std::make_unique<MemorySource>(bytes), as);
  } catch (const lnorm::Error&) {
    return nullptr;
  }
}

bool are_alike(const std::optional<Tensor>& a, const std::optional<Tensor>& b) {
  if (!a || !b) return a.has_value() == b.has_value();
  return a->info.dtype == b->info.dtype && a->info.shape == b->info.shape &&
         a->info.order == b->info.order && a->info.byte_order == b->info.byte_order &&
         a->elements == b->elements;
}

std::uint32_t little(std::string_view bytes, std::size_t size) {
  std::uint32_t value = 0;
  for (std::size_t i = size; i-- > 0;) {
    value = value << 8 | static_cast<unsigned char>(bytes[i]);
  }
  return value;
}

// Whether what follows some local header is content. [PKWARE, APPNOTE 6.3, 4.3.7]
bool is_stored(std::string_view archive, std::string_view content) {
  for (std::size_t at = archive.find("PK\x03\x04"); at != archive.npos;
       at = archive.find("PK\x03\x04", at + 1)) {
    const std::string_view header = archive.substr(at);
    if (header.size() < 30) return false;
    const std::size_t names = little(header.substr(26), 2) + little(header.substr(28), 2);
    if (header.size() >= 30 + names && header.substr(30 + names).starts_with(content)) return true;
  }
  return false;
}

// Whether some entry of a directory tells the sum of content, and, if that is stored, the file has it.
// [4.3.12]
bool is_told(std::string_view archive, std::string_view content) {
  const std::uint32_t crc = support::crc32(content);
  for (std::size_t at = archive.find("PK\x01\x02"); at != archive.npos;
       at = archive.find("PK\x01\x02", at + 1)) {
    const std::string_view entry = archive.substr(at);
    if (entry.size() < 46 || little(entry.substr(16), 4) != crc) continue;
    if (little(entry.substr(10), 2) != 0 || is_stored(archive, content)) return true;
  }
  return false;
}

class Archive {
 public:
  explicit Archive(std::string_view bytes)
      : bytes_(bytes),
        archive_(std::make_shared<const lnorm::ZipArchive>(std::make_unique<MemorySource>(bytes))) {
  }

  std::size_t size() const { return archive_->size(); }
  std::string name(std::size_t index) const { return archive_->member_name(index); }

  std::string label(std::size_t index) const {
    const std::string stored = name(index);
    return stored.ends_with(".npy") ? stored.substr(0, stored.size() - 4) : stored;
  }

  // The file that a member is, checked; nothing where it is refused, or has another size than it claims.
  std::optional<std::string> content(std::size_t index) const {
    try {
      std::vector<std::byte> content;
      const auto member = lnorm::ZipArchive::open(archive_, index, "x");
      const auto claimed = static_cast<std::size_t>(member->remaining().value());
      member->read(content, kMaxContent + 1);
      if (content.size() <= kMaxContent) {
        require(is_told(bytes_, text(content)), "a member has the CRC-32 of the directory");
        if (content.size() != claimed) return std::nullopt;
      }
      return text(content);
    } catch (const lnorm::Error&) {
      return std::nullopt;
    }
  }

 private:
  std::string_view bytes_;
  std::shared_ptr<const lnorm::ZipArchive> archive_;
};

// What is read at positions, from the last piece to the first one.
std::string read_backward(const lnorm::TensorSource& source, std::size_t size) {
  constexpr std::size_t kPiece = 24;
  std::string elements(size, '\0');
  for (std::size_t at = size; at > 0;) {
    const std::size_t begin = (at - 1) / kPiece * kPiece;
    source.read_at(static_cast<std::int64_t>(begin),
                   std::as_writable_bytes(std::span(elements).subspan(begin, at - begin)));
    at = begin;
  }
  return elements;
}

void check_member(const lnorm::TensorSet& set, const Archive& archive, std::size_t index) {
  require(set.tensor_name(index) == archive.label(index), "a member is listed by its name");
  const lnorm::Member listed = set.describe(index);
  const auto content = archive.content(index);
  const auto tensor = read_member(set, index);
  require(are_alike(read_member(set, index), tensor), "a member gives the same tensor twice");
  if (content && content->size() > kMaxContent) return;
  require(are_alike(tensor, content ? read_npy(*content) : std::nullopt),
          "a member is read like the file that it is");
  if (!tensor) return;
  require(listed.dtype == lnorm::name(tensor->info.dtype), "it is listed with its dtype");
  require(listed.shape == tensor->info.shape, "it is listed with its shape");
  const auto source = set.open(index);
  if (!source->has_random_access()) return;
  require(read_backward(*source, tensor->elements.size()) == tensor->elements,
          "positions have the same elements");
  source->finish();
}

void check_archive(std::string_view bytes) {
  const auto set = open_set(bytes, lnorm::DType::bfloat16);
  require((open_set(bytes, {}) != nullptr) == (set != nullptr),
          "dtypes do not keep members from being listed");
  if (!set) return;
  const Archive archive(bytes);
  require(set->size() == archive.size(), "all members are listed");
  for (std::size_t i = 0; i < std::min(archive.size(), kMaxOpened); ++i) {
    check_member(*set, archive, i);
  }
}

// Any bytes as a member whose sum is right.
void check_as_member(std::string_view bytes) {
  const auto tensor = read_npy(bytes);
  for (const bool deflated : {false, true}) {
    const std::string archive = support::zip({{"x.npy", std::string(bytes), deflated}});
    const auto set = open_set(archive, lnorm::DType::bfloat16);
    require(are_alike(read_member(*set, 0), tensor), "a file is read within an archive, too");
  }
}

}  // namespace

int fuzz_npz(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  check_archive(bytes);
  if (bytes.starts_with("\x93NUMPY")) check_as_member(bytes);
  return 0;
}
