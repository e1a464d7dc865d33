#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include "lnorm/core/tensor_info.hpp"
#include "lnorm/io/byte_sink.hpp"
#include "lnorm/io/tensor_sink.hpp"

namespace lnorm {

// A folder of files, none of which appears or is replaced before all are done; others that are there stay. Until
// then they are in a temporary folder, within the folder or, if that is not there yet, beside it.
class FolderSink {
 public:
  // Throws Error unless the path is a folder, or can become one.
  explicit FolderSink(const std::string& path);
  FolderSink(const FolderSink&) = delete;
  FolderSink& operator=(const FolderSink&) = delete;
  ~FolderSink();

  // Messages call it so: the path.
  const std::string& name() const noexcept { return name_; }
  void set_name(std::string name) { name_ = std::move(name); }

  // The next file: its name, in which slashes lead to folders, and its extension, with the dot. The file before
  // it is closed, and given up unless keep() was called. Throws Error, naming the file, if that name cannot be
  // one in this folder, or is there twice.
  ByteSink& begin(const std::string& file, const std::string& extension);

  // The file is complete. Throws Error if anything was lost.
  void keep();

  // After the last file: gives up one that is not complete.
  void finish();

  // Puts all files in their places. Throws Error if that fails, of which some may be in their places then.
  void commit();

 private:
  std::string place(const std::string& file) const { return path_ + '/' + file; }
  void under_its_name(const std::function<void()>& action) const;
  void check_name(const std::string& file, const std::string& extension) const;
  void check_place(const std::string& path) const;
  void check_others(const std::string& file) const;
  void make_folders() const;

  std::string name_;
  std::string path_;
  bool is_there_ = false;
  std::string temporary_;
  std::unordered_set<std::string> names_;  // without the extensions
  std::unordered_set<std::string> files_;
  std::set<std::string> folders_;  // of the files; each one before those within it
  std::vector<std::string> kept_;  // the file at index i is called i in the temporary folder
  std::optional<ByteSink> begun_;  // given up where it is reset before it is kept
  std::string begun_title_;        // for messages
  std::string begun_name_;
  std::string begun_file_;
};

using FileExtension = std::function<std::string(const TensorInfo& info)>;
using MakeTensorSink =
    std::function<std::unique_ptr<TensorSink>(ByteSink& bytes, const TensorInfo& info)>;

// A file for every tensor, called like the tensor. What is written is put in its place by commit() of the folder.
std::unique_ptr<TensorSetSink> make_folder_set_sink(FolderSink& folder, FileExtension extension,
                                                    MakeTensorSink make_sink);

}  // namespace lnorm
