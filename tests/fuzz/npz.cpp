#include "lnorm/io/zip/npz.hpp"

#include <algorithm>

#include "fuzz/in_memory.hpp"
#include "fuzz/targets.hpp"
#include "lnorm/io/npy/npy.hpp"
#include "lnorm/io/raw_tensor.hpp"
#include "lnorm/io/zip/zip_archive.hpp"
#include "support/sets.hpp"
#include "support/zip.hpp"

namespace {

using namespace fuzz;
using support::little_endian;
using support::text_of;

// An archive is opened for each of its members several times.
constexpr std::size_t kMaxOpened = 4;
// What inflates to more, and is not looked at.
constexpr std::size_t kMaxContent = 65536;

// Nothing where open refuses, or what it has opened.
template <class Open>
std::optional<Tensor> read(Open open) {
  return unless_refused([&] {
    const std::unique_ptr<lnorm::TensorSource> source = open();
    const auto bytes = read_all(*source);
    require(static_cast<std::int64_t>(bytes.size()) == lnorm::data_bytes(source->info()),
            "there are as many elements as the header says");
    return Tensor{source->info(), text_of(bytes)};
  });
}

std::optional<Tensor> read_npy(std::string_view bytes) {
  return read([&] { return lnorm::open_npy(memory_source(bytes), lnorm::DType::bfloat16); });
}

std::optional<Tensor> read_member(const lnorm::TensorSet& set, std::size_t index) {
  return read([&] { return set.open(index); });
}

// Nothing where it is refused.
std::unique_ptr<lnorm::TensorSet> open_set(std::string_view bytes, std::optional<lnorm::DType> as) {
  return unless_refused([&] {
           return lnorm::open_npz(std::make_shared<const lnorm::ZipArchive>(memory_source(bytes)),
                                  as);
         })
      .value_or(nullptr);
}

// Whether what follows some local header is content. [PKWARE, APPNOTE 6.3, 4.3.7]
bool is_stored(std::string_view archive, std::string_view content) {
  for (std::size_t at = archive.find("PK\x03\x04"); at != archive.npos;
       at = archive.find("PK\x03\x04", at + 1)) {
    const std::string_view header = archive.substr(at);
    if (header.size() < 30) return false;
    const auto names = little_endian(header.substr(26), 2) + little_endian(header.substr(28), 2);
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
    if (entry.size() < 46 || little_endian(entry.substr(16), 4) != crc) continue;
    if (little_endian(entry.substr(10), 2) != 0 || is_stored(archive, content)) return true;
  }
  return false;
}

class Archive {
 public:
  explicit Archive(std::string_view bytes)
      : bytes_(bytes), archive_(std::make_shared<const lnorm::ZipArchive>(memory_source(bytes))) {}

  std::size_t size() const { return archive_->size(); }
  std::string name(std::size_t index) const { return archive_->member_name(index); }

  std::string label(std::size_t index) const {
    const std::string stored = name(index);
    return stored.ends_with(".npy") ? stored.substr(0, stored.size() - 4) : stored;
  }

  // The file that a member is, checked; nothing where it is refused, or has another size than it claims.
  std::optional<std::string> content(std::size_t index) const {
    const auto content = unless_refused([&]() -> std::optional<std::string> {
      std::vector<std::byte> bytes;
      const auto member = archive_->open(index, "x");
      const auto claimed = static_cast<std::size_t>(member->remaining().value());
      member->read(bytes, kMaxContent + 1);
      if (bytes.size() <= kMaxContent) {
        require(is_told(bytes_, text_of(bytes)), "a member has the CRC-32 of the directory");
        if (bytes.size() != claimed) return std::nullopt;
      }
      return text_of(bytes);
    });
    return content.value_or(std::nullopt);
  }

 private:
  std::string_view bytes_;
  std::shared_ptr<const lnorm::ZipArchive> archive_;
};

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
  require(
      text_of(support::read_in_pieces(*source, tensor->elements.size(), 24)) == tensor->elements,
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
  const std::string_view bytes = bytes_of(data, size);
  check_archive(bytes);
  if (bytes.starts_with("\x93NUMPY")) check_as_member(bytes);
  return 0;
}
