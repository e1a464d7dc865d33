#include "lnorm/io/folder_set.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "lnorm/core/error.hpp"
#include "lnorm/core/pattern.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/io/format.hpp"

namespace lnorm {

namespace {

namespace fs = std::filesystem;

bool is_tensor_file(const fs::path& path) {
  // Not of JSON, which as a rule is something else.
  constexpr std::array<std::string_view, 6> kExtensions{".npy", ".npz", ".safetensors",
                                                        ".pt",  ".pth", ".pb"};
  return std::find(kExtensions.begin(), kExtensions.end(), extension(path.string())) !=
         kExtensions.end();
}

// Not of a folder, nor of a pipe, which nobody may write to. That a link leads nowhere is told when it is asked for.
bool is_file(fs::file_type type) {
  return type == fs::file_type::regular || type == fs::file_type::not_found ||
         type == fs::file_type::none;
}

struct File {
  std::string tensor_name;
  std::string path;
};

std::vector<File> find_files(const std::string& folder) {
  std::vector<File> files;
  std::error_code error;
  fs::recursive_directory_iterator entry(folder, error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    const fs::path& path = entry->path();
    std::error_code ignored;
    if (path.filename().string().starts_with('.')) {
      entry.disable_recursion_pending();
    } else if (is_tensor_file(path) && is_file(entry->status(ignored).type())) {
      files.push_back(
          {fs::path(path).replace_extension().lexically_relative(folder).string(), path.string()});
    }
  }
  if (error) throw SystemError(concat(printable(folder), ": ", error.message()));
  std::sort(files.begin(), files.end(), [](const File& a, const File& b) {
    return natural_less(a.tensor_name, b.tensor_name);
  });
  return files;
}

class FolderSet final : public TensorSet {
 public:
  FolderSet(const std::string& path, OpenFile open)
      : TensorSet(path), open_(std::move(open)), files_(find_files(path)) {
    const auto twice = std::adjacent_find(
        files_.begin(), files_.end(),
        [](const File& a, const File& b) { return a.tensor_name == b.tensor_name; });
    if (twice != files_.end()) {
      throw Error(concat(printable(path), ": two files give the name '",
                         printable(twice->tensor_name), "': ", printable(twice->path), " and ",
                         printable((twice + 1)->path)));
    }
  }

  std::size_t size() const override { return files_.size(); }
  std::string tensor_name(std::size_t index) const override { return files_[index].tensor_name; }
  TensorInfo info(std::size_t index) const override { return file(index).info(0); }
  std::unique_ptr<TensorSource> open(std::size_t index) const override {
    auto source = file(index).open(0);
    latest_.reset();
    return source;
  }
  Member describe(std::size_t index) const override {
    try {
      Member member = file(index).describe(0);
      member.name = tensor_name(index);
      return member;
    } catch (const Error& error) {
      return {tensor_name(index), concat("(", error.what(), ")"), {}, {}};
    }
  }

 private:
  // Kept until another one is asked for.
  const TensorSet& file(std::size_t index) const {
    if (latest_ && latest_index_ == index) return *latest_;
    latest_ = open_(files_[index].path);
    latest_index_ = index;
    if (latest_->size() == 1) return *latest_;
    const std::size_t size = latest_->size();
    latest_.reset();
    throw Error(concat(printable(files_[index].path), ": found ",
                       counted(static_cast<long long>(size), "tensor"),
                       ", expected one in a file of a folder"));
  }

  OpenFile open_;
  std::vector<File> files_;
  mutable std::shared_ptr<const TensorSet> latest_;
  mutable std::size_t latest_index_ = 0;
};

}  // namespace

std::unique_ptr<TensorSet> open_folder(const std::string& path, OpenFile open) {
  return std::make_unique<FolderSet>(path, std::move(open));
}

}  // namespace lnorm
