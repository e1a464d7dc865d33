#include "lnorm/io/folder_sink.hpp"

#include <climits>
#include <filesystem>
#include <string_view>
#include <utility>

#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/io/members.hpp"
#include "lnorm/io/os.hpp"

namespace lnorm {

namespace {

std::string without_slashes_behind(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

std::string parent_of(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

// Calls with "a", "a/b" for "a/b/c".
template <class Call>
void for_each_folder(const std::string& file, Call call) {
  for (std::size_t slash = file.find('/'); slash != file.npos; slash = file.find('/', slash + 1)) {
    call(file.substr(0, slash));
  }
}

class FolderSetSink final : public TensorSetSink {
 public:
  FolderSetSink(FolderSink& folder, FileExtension extension, MakeTensorSink make_sink)
      : folder_(folder), extension_(std::move(extension)), make_sink_(std::move(make_sink)) {}

  std::unique_ptr<TensorSink> begin(const TensorInfo& info) override {
    ByteSink& bytes = folder_.begin(info.name, extension_(info));
    return std::make_unique<FollowedSink>(make_sink_(bytes, info),
                                          [&folder = folder_] { folder.keep(); });
  }
  void finish() override { folder_.finish(); }

 private:
  FolderSink& folder_;
  FileExtension extension_;
  MakeTensorSink make_sink_;
};

}  // namespace

FolderSink::FolderSink(const std::string& path) : name_(path), path_(without_slashes_behind(path)) {
  const auto found = os::status(path_);
  is_there_ = found.has_value();
  if (found && !S_ISDIR(found->st_mode)) {
    throw Error(concat(printable(path_), ": is a file, expected a folder"));
  }
  temporary_ = os::create_temporary_folder(is_there_ ? path_ : parent_of(path_), path_);
}

FolderSink::~FolderSink() {
  begun_.reset();
  if (!temporary_.empty()) os::remove_folder_quietly(temporary_);
}

ByteSink& FolderSink::begin(const std::string& file, const std::string& extension) {
  begun_.reset();
  check_name(file, extension);
  const std::string whole = file + extension;
  check_place(whole);
  begun_title_ = concat(name_, name_.ends_with('/') ? "" : "/", whole);
  under_its_name([&] { begun_.emplace(concat(temporary_, '/', kept_.size())); });
  begun_->set_name(begun_title_);
  begun_name_ = file;
  begun_file_ = whole;
  return *begun_;
}

void FolderSink::keep() {
  begun_->finish();
  under_its_name([&] { begun_->commit(); });
  begun_.reset();
  kept_.push_back(begun_file_);
  files_.insert(begun_file_);
  names_.insert(begun_name_);
  for_each_folder(begun_file_, [&](const std::string& folder) { folders_.insert(folder); });
}

// What fails in the temporary folder is told of the file that was meant.
void FolderSink::under_its_name(const std::function<void()>& action) const {
  try {
    action();
  } catch (const SystemError& error) {
    const std::string_view what = error.what();
    throw SystemError(concat(printable(begun_title_), what.substr(what.rfind(": "))));
  }
}

void FolderSink::finish() { begun_.reset(); }

void FolderSink::commit() {
  begun_.reset();
  make_folders();
  // From the last one on: what is left has the first numbers, by which it can be removed.
  for (; !kept_.empty(); kept_.pop_back()) {
    const std::string from = concat(temporary_, '/', kept_.size() - 1);
    const std::string to = place(kept_.back());
    if (const auto replaced = os::status(to)) os::take_over(from, *replaced);
    os::rename(from, to);
  }
  os::remove_folder_quietly(std::exchange(temporary_, ""));
}

void FolderSink::check_name(const std::string& file, const std::string& extension) const {
  constexpr std::size_t kMaxBytes = 255;  // what file systems have room for
  const auto fail = [&](std::string_view what) {
    throw Error(concat(printable(name_), ": '", short_name(file),
                       "' cannot be the name of a file: ", what));
  };
  if (file.empty()) fail("it is empty");
  if (file.find('\0') != file.npos) fail("it has a NUL byte");
  if (file[0] == '/') fail("it is absolute");
  for (std::size_t begin = 0; begin <= file.size();) {
    const std::size_t slash = file.find('/', begin);
    const bool is_last = slash == file.npos;
    const std::string part = file.substr(begin, slash - begin);
    if (part.empty()) fail("it has an empty part");
    if (part == "." || part == "..") fail(concat("it has a part '", part, "'"));
    if (part.starts_with('.')) fail("a part of it begins with a dot, and would be passed over");
    if (part.size() + (is_last ? extension.size() : 0) > kMaxBytes) {
      fail(concat("it has a part of ", part.size(), " bytes, expected at most ",
                  kMaxBytes - (is_last ? extension.size() : 0)));
    }
    if (is_last) break;
    begin = slash + 1;
  }
  if (place(file + extension).size() >= PATH_MAX) fail("the path would be too long");
  if (names_.contains(file)) fail("the folder has one of that name");
  const std::string whole = file + extension;
  if (files_.contains(whole) || folders_.contains(whole)) {
    fail(concat(short_name(whole), " is there twice"));
  }
  for_each_folder(whole, [&](const std::string& folder) {
    if (files_.contains(folder)) fail(concat(short_name(folder), " is a file"));
  });
}

void FolderSink::check_place(const std::string& file) const {
  if (!is_there_) return;
  for_each_folder(file, [&](const std::string& folder) {
    const auto found = os::status(place(folder));
    if (found && !S_ISDIR(found->st_mode)) {
      throw Error(concat(printable(place(folder)), ": is a file, expected a folder"));
    }
  });
  const auto found = os::status(place(file));
  if (!found) return check_others(file);
  if (S_ISDIR(found->st_mode)) {
    throw Error(concat(printable(place(file)), ": is a directory, expected a file to write"));
  }
  if (!S_ISREG(found->st_mode)) {
    throw Error(concat(printable(place(file)), ": is no regular file, which cannot be replaced"));
  }
  os::check_writable(place(file));
}

// A tensor that went there in another format has the same name.
void FolderSink::check_others(const std::string& file) const {
  for (const std::string_view extension : {".npy", ".safetensors"}) {
    const auto other = std::filesystem::path(place(file)).replace_extension(extension).string();
    if (other == place(file) || !os::status(other)) continue;
    throw Error(concat(printable(other), ": has the name of a tensor that goes to ",
                       printable(place(file))),
                concat("rm ", shell_word(other)));
  }
}

void FolderSink::make_folders() const {
  std::vector<std::string> made;
  try {
    const auto make = [&](const std::string& path) {
      if (!os::status(path) && os::make_folder(path)) made.push_back(path);
    };
    make(path_);
    for (const std::string& folder : folders_) make(place(folder));
  } catch (const Error&) {
    std::error_code ignored;
    for (; !made.empty(); made.pop_back()) std::filesystem::remove(made.back(), ignored);
    throw;
  }
}

std::unique_ptr<TensorSetSink> make_folder_set_sink(FolderSink& folder, FileExtension extension,
                                                    MakeTensorSink make_sink) {
  return std::make_unique<FolderSetSink>(folder, std::move(extension), std::move(make_sink));
}

}  // namespace lnorm
