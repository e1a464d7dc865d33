#include "lnorm/io/zip/npz.hpp"

#include <string_view>
#include <utility>
#include <vector>

#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/io/npy/npy.hpp"
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

std::size_t choose(const ZipArchive& archive, const std::optional<std::string>& member) {
  const auto name_of = [&](std::size_t i) { return label(archive.member_name(i)); };
  // As it is stored.
  for (std::size_t i = 0; member && i < archive.size(); ++i) {
    if (archive.member_name(i) == *member && name_of(i) != *member) return i;
  }
  return choose_member(archive.name(), archive.size(), name_of, member);
}

Member describe(ByteSource& bytes, std::string name, std::optional<DType> as) {
  const TensorInfo info = read_npy_header(bytes, as);
  return {std::move(name), std::string(lnorm::name(info.dtype)), info.shape};
}

class NpzMembers final : public Members {
 public:
  NpzMembers(std::unique_ptr<ByteSource> bytes, std::optional<DType> as) {
    const auto archive = std::make_shared<const ZipArchive>(std::move(bytes));
    for (std::size_t i = 0; i < archive->size(); ++i) {
      const std::string name = label(archive->member_name(i));
      try {
        members_.push_back(describe(*open(archive, i), name, as));
      } catch (const SystemError&) {
        throw;
      } catch (const ForeignDType& foreign) {
        members_.push_back({name, foreign.dtype(), {}});
      } catch (const Error& error) {
        members_.push_back({name, concat("(", error.what(), ")"), {}});
      }
    }
  }

  std::size_t size() const override { return members_.size(); }
  Member operator[](std::size_t index) const override { return members_[index]; }

 private:
  std::vector<Member> members_;
};

}  // namespace

std::unique_ptr<TensorSource> open_npz(std::unique_ptr<ByteSource> bytes,
                                       const std::optional<std::string>& member,
                                       std::optional<DType> as) {
  const auto archive = std::make_shared<const ZipArchive>(std::move(bytes));
  return open_npy(open(archive, choose(*archive, member)), as);
}

std::unique_ptr<Members> open_npz_members(std::unique_ptr<ByteSource> bytes,
                                          std::optional<DType> as) {
  return std::make_unique<NpzMembers>(std::move(bytes), as);
}

}  // namespace lnorm
