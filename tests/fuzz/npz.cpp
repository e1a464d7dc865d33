#include "lnorm/io/zip/npz.hpp"

#include <algorithm>
#include <vector>

#include "fuzz/in_memory.hpp"
#include "fuzz/targets.hpp"
#include "lnorm/core/error.hpp"
#include "lnorm/io/npy/npy.hpp"
#include "lnorm/io/raw_tensor.hpp"
#include "lnorm/io/zip/zip_archive.hpp"
#include "support/sets.hpp"
#include "support/zip.hpp"

namespace {

using namespace fuzz;

// An archive is opened for each of its members several times.
constexpr std::size_t kMostOpened = 4;
// What inflates to more, and is not looked at.
constexpr std::size_t kMostContent = 65536;

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

std::optional<Tensor> read_member(std::string_view archive,
                                  const std::optional<std::string>& name) {
  return read([&] {
    const auto set =
        lnorm::open_npz(std::make_unique<MemorySource>(archive), lnorm::DType::bfloat16);
    const auto index = name               ? set->find(*name)
                       : set->size() == 1 ? std::optional<std::size_t>(0)
                                          : std::nullopt;
    if (!index) throw lnorm::Error("there is no such tensor");
    return set->open(*index);
  });
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

  // Whether a name may mean another member, too.
  bool is_shared(const std::string& name) const {
    std::size_t count = 0;
    for (std::size_t i = 0; i < size(); ++i) count += this->name(i) == name || label(i) == name;
    return count > 1;
  }

  // The file that a member is, checked; nothing where it is refused, or has another size than it claims.
  std::optional<std::string> content(std::size_t index) const {
    try {
      std::vector<std::byte> content;
      const auto member = lnorm::ZipArchive::open(archive_, index, "x");
      const auto claimed = static_cast<std::size_t>(member->remaining().value());
      member->read(content, kMostContent + 1);
      if (content.size() <= kMostContent) {
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

std::optional<std::vector<lnorm::Member>> list(std::string_view bytes,
                                               std::optional<lnorm::DType> as) {
  try {
    return support::list(*lnorm::open_npz(std::make_unique<MemorySource>(bytes), as));
  } catch (const lnorm::Error&) {
    return std::nullopt;
  }
}

void check_member(std::string_view bytes, const Archive& archive, std::size_t index,
                  const lnorm::Member& listed) {
  require(listed.name == archive.label(index), "a member is listed by its name");
  const auto content = archive.content(index);
  for (const std::string& name : {archive.label(index), archive.name(index)}) {
    const auto tensor = read_member(bytes, name);
    require(are_alike(read_member(bytes, name), tensor), "a name gives the same tensor twice");
    if (archive.is_shared(name) || (content && content->size() > kMostContent)) continue;
    require(are_alike(tensor, content ? read_npy(*content) : std::nullopt),
            "a member is read like the file that it is");
    if (!tensor) continue;
    require(listed.dtype == lnorm::name(tensor->info.dtype), "it is listed with its dtype");
    require(listed.shape == tensor->info.shape, "it is listed with its shape");
  }
}

void check_archive(std::string_view bytes) {
  const auto listed = list(bytes, lnorm::DType::bfloat16);
  const auto only = read_member(bytes, {});
  if (!listed) {
    require(!only, "what cannot be listed is not read");
    return;
  }
  const Archive archive(bytes);
  require(listed->size() == archive.size(), "all members are listed");
  require(list(bytes, {}).has_value(), "dtypes do not keep members from being listed");
  require(!only || archive.size() == 1, "one of several members needs a name");
  for (std::size_t i = 0; i < std::min(archive.size(), kMostOpened); ++i) {
    check_member(bytes, archive, i, listed->at(i));
  }
}

// Any bytes as a member whose sum is right.
void check_as_member(std::string_view bytes) {
  const auto tensor = read_npy(bytes);
  for (const bool deflated : {false, true}) {
    const std::string archive = support::zip({{"x.npy", std::string(bytes), deflated}});
    require(are_alike(read_member(archive, {}), tensor), "a file is read within an archive, too");
  }
}

}  // namespace

int fuzz_npz(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  check_archive(bytes);
  if (bytes.starts_with("\x93NUMPY")) check_as_member(bytes);
  return 0;
}
