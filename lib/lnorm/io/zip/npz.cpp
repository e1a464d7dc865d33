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

}  // namespace

std::unique_ptr<TensorSource> open_npz(std::unique_ptr<ByteSource> bytes,
                                       const std::optional<std::string>& member,
                                       std::optional<DType> as) {
  const auto archive = std::make_shared<const ZipArchive>(std::move(bytes));
  return open_npy(open(archive, choose(*archive, member)), as);
}

Members open_npz_members(std::unique_ptr<ByteSource> bytes, std::optional<DType> as) {
  const auto archive = std::make_shared<const ZipArchive>(std::move(bytes));
  const auto members = std::make_shared<std::vector<Member>>();
  for (std::size_t i = 0; i < archive->size(); ++i) {
    const std::string name = label(archive->member_name(i));
    try {
      members->push_back(describe(*open(archive, i), name, as));
    } catch (const SystemError&) {
      throw;
    } catch (const ForeignDType& foreign) {
      members->push_back({name, foreign.dtype(), {}});
    } catch (const Error& error) {
      members->push_back({name, concat("(", error.what(), ")"), {}});
    }
  }
  return {members->size(), [members](std::size_t index) { return (*members)[index]; }};
}

}  // namespace lnorm
