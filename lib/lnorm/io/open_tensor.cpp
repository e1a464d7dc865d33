#include "lnorm/io/open_tensor.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lnorm/core/dtype_table.hpp"
#include "lnorm/core/error.hpp"
#include "lnorm/core/nearest.hpp"
#include "lnorm/core/pattern.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/io/byte_slice.hpp"
#include "lnorm/io/detect_format.hpp"
#include "lnorm/io/format.hpp"
#include "lnorm/io/json/json_lines.hpp"
#include "lnorm/io/json/json_tensor.hpp"
#include "lnorm/io/json/json_text.hpp"
#include "lnorm/io/members.hpp"
#include "lnorm/io/os.hpp"

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
    } else if (is_tensor_file(path) &&
               // The first comes with the name; the second asks the system.
               (entry->is_regular_file(ignored) || is_file(entry->status(ignored).type()))) {
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

// The tensors of a folder: those of its files with an extension of .npy, .npz, .safetensors, .pt, .pth or .pb,
// and of the folders in it, in natural order of their names. Each file has one tensor, which is called by the
// file's path in the folder, without the extension: "h.0/in" for "h.0/in.npy". Names that begin with a dot are
// passed over. open: the set of a file, which is opened when its tensor is asked for. Throws Error if two files
// give the same name.
class FolderSet final : public TensorSet {
 public:
  using OpenFile = std::function<std::shared_ptr<const TensorSet>(const std::string& path)>;

  FolderSet(const std::string& path, OpenFile open)
      : TensorSet(path), open_(std::move(open)), files_(find_files(path)) {
    const auto twice = std::adjacent_find(
        files_.begin(), files_.end(),
        [](const File& a, const File& b) { return a.tensor_name == b.tensor_name; });
    if (twice != files_.end()) {
      fail(concat("two files give the name '", printable(twice->tensor_name),
                  "': ", printable(twice->path), " and ", printable((twice + 1)->path)));
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

const Remedy kElementsAlone{Remedy::Setting::raw_elements};

bool starts_literal(std::string_view word) { return trimmed_json(word).find_first_of("[{") == 0; }

// A long one has no end, and cannot be given again.
std::string name_of_literal(const std::string& text) {
  constexpr std::size_t kMax = 100;
  return text.size() > kMax ? concat(text.substr(0, kMax), kCutLiteral) : text;
}

// Where a member of JSON is named behind it; npos: none is.
std::size_t colon_after_literal(std::string_view word) {
  const std::size_t end = word.find_last_of("]}");
  const bool is_named = end != word.npos && word.substr(end + 1).starts_with(':');
  return is_named ? end + 1 : word.npos;
}

struct TensorName {
  std::string path;
  std::optional<std::string> member = {};
  bool is_folder = false;
};

TensorName split_name(const std::string& name, const ReadOptions& options) {
  bool is_folder = false;
  const auto is_there = [&](const std::string& path) {
    if (path == "-") return true;
    if (options.files && options.files->contains(path)) {
      is_folder = options.files->at(path).is_folder;
      return true;
    }
    const auto status = os::status(path);
    is_folder = status && S_ISDIR(status->st_mode);
    return status.has_value();
  };
  if (is_there(name)) return {name, {}, is_folder};
  if (starts_literal(name)) {
    const std::size_t colon = colon_after_literal(name);
    return colon < name.size() ? TensorName{name.substr(0, colon), name.substr(colon + 1)}
                               : TensorName{name, {}};
  }
  for (std::size_t colon = name.rfind(':'); colon != std::string::npos && colon > 0;
       colon = name.rfind(':', colon - 1)) {
    const std::string path = name.substr(0, colon);
    if (is_there(path)) return {path, name.substr(colon + 1), is_folder};
  }
  return {name};
}

bool is_number(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

// What a word names, as far as it can be told without looking for a tensor.
class Opening {
 public:
  Opening(const std::string& word, const ReadOptions& options, Role role)
      : name_(split_name(word, options)), options_(options), role_(role) {
    if (find_open_file() || (name_.is_folder && (!options.from || options.yields))) return;
    is_literal_ = is_json_literal(name_.path);
    bytes_ = is_literal_ ? std::make_unique<TextBytes>(name_of_literal(name_.path), name_.path)
                         : open_file(name_.path);
    const bool is_given = options.from && !(options.yields && tells_format(*bytes_));
    format_ = is_given ? *options.from : detect();
    if (role == Role::auxiliary && !format_row(format_).is_binary) options_.as.reset();
  }

  // Whether it is every line of JSON Lines, or a member of every line.
  bool is_lines() const {
    return format_ == Format::jsonl && (!name_.member || !is_number(*name_.member));
  }

  TensorLines lines() {
    const auto lines = std::make_shared<JsonLines>(std::move(bytes_), options_.as);
    return [lines, member = name_.member, label = label()]() -> std::optional<OpenedTensor> {
      auto found = lines->next(member);
      if (!found) return std::nullopt;
      const std::string& name = member ? *member : label;
      return OpenedTensor{std::move(found->tensor), Format::jsonl,          name, {},
                          std::move(found->before), std::move(found->after)};
    };
  }

  // has_patterns: a name that is none may be a pattern.
  Selection selection(bool has_patterns = true) {
    const std::shared_ptr<const TensorSet> set = open_set();
    Selection selection;
    selection.name = set->name();
    selection.sets.push_back(set);
    const bool is_named = !is_line_ && name_.member.has_value();
    selection.is_file = !is_named;
    const auto select = [&](std::size_t index, Captures captures) {
      std::string name = set->tensor_name(index);
      if (name.empty() && !is_named && set->size() == 1) name = label();
      selection.tensors.push_back({set, index, format_, name, name, std::move(captures)});
    };
    const auto literal = is_named ? set->find(*name_.member) : std::nullopt;
    if (!is_named) {
      for (std::size_t i = 0; i < set->size(); ++i) select(i, {});
      selection.several = set->has_several() || is_folder_;
    } else if (literal) {
      select(*literal, {});
    } else if (has_patterns && is_pattern(*name_.member)) {
      for (std::size_t i = 0; i < set->size(); ++i) {
        if (auto captures = match(*name_.member, set->tensor_name(i))) select(i, *captures);
      }
      selection.several = true;
    }
    if (is_named && selection.tensors.empty()) fail_to_find(*set, has_patterns);
    return selection;
  }

 private:
  Format detect() const {
    try {
      return detect_format(*bytes_);
    } catch (const ElementsAlone& error) {
      if (role_ != Role::auxiliary) throw Error(error.what(), kElementsAlone);
      throw Error(
          error.what(),
          hint_about(bytes_->name(),
                     "elements alone, in Python: "
                     "numpy.save('FILE.npy', numpy.fromfile('FILE', 'float32').reshape(D, D))"));
    }
  }

  // For JSON that is JSON Lines.
  std::string hint_for_lines() const {
    if (name_.path == "-") return "write it to a file x.jsonl, and name a line of it x.jsonl:1";
    const auto renamed = std::filesystem::path(name_.path).replace_extension(".jsonl").string();
    return concat("name it .jsonl, and a line of it ", shell_word(concat(renamed, ":1")));
  }

  bool find_open_file() {
    if (!options_.files || options_.from) return false;
    const auto found = options_.files->find(name_.path);
    if (found == options_.files->end()) return false;
    open_file_ = found->second.set.lock();
    format_ = found->second.format;
    is_folder_ = open_file_ && name_.is_folder;
    return open_file_ != nullptr;
  }

  std::shared_ptr<const TensorSet> open_set() {
    if (open_file_) return open_file_;
    std::shared_ptr<const TensorSet> set = open_new_set();
    if (options_.files && !is_line_ && !set->is_pipe()) {
      options_.files->insert_or_assign(name_.path, OpenSet{set, format_, is_folder_});
    }
    return set;
  }

  std::shared_ptr<const TensorSet> open_new_set() {
    if (!bytes_) {
      is_folder_ = true;
      return std::make_shared<FolderSet>(name_.path, [options = options_](const std::string& path) {
        return Opening(path, options, Role::auxiliary).open_set();
      });
    }
    const FormatRow& row = format_row(format_);
    is_line_ = format_ == Format::jsonl;
    if (is_line_) format_ = Format::json;  // of a line
    try {
      return row.open(std::move(bytes_), options_, name_.member);
    } catch (const MoreLines& error) {
      if (role_ == Role::stream) {
        throw Error(error.what(), Remedy{Remedy::Setting::format, "jsonl"});
      }
      throw Error(error.what(), hint_for_lines());
    }
  }

  // What a tensor without a name is called after.
  std::string label() const {
    return name_.path == "-" || is_literal_ ? "x"
                                            : std::filesystem::path(name_.path).stem().string();
  }

  [[noreturn]] void fail_to_find(const TensorSet& set, bool has_patterns) const {
    const std::string member = short_name(*name_.member);
    if (set.size() == 1 && set.tensor_name(0).empty()) {
      set.fail(concat("holds one tensor without a name, found ':", member, "' after it"));
    }
    if (set.size() == 0) {
      throw MissingTensor(
          concat(printable(set.name()), ": has no tensors, expected '", member, "'"));
    }
    const auto name = [&](std::size_t i) { return set.tensor_name(i); };
    const bool is_a_pattern = has_patterns && is_pattern(*name_.member);
    const std::string near = is_a_pattern ? "" : nearest(*name_.member, set.size(), name);
    throw MissingTensor(
        concat(printable(set.name()), ": there is no tensor ", is_a_pattern ? "that matches " : "",
               "'", member, "', only ", short_list(set.size(), name)),
        hint_to_nearest(set.name(), near));
  }

  TensorName name_;
  ReadOptions options_;
  Role role_;
  std::unique_ptr<ByteSource> bytes_;  // none for a folder, or a file that is open already
  std::shared_ptr<const TensorSet> open_file_;
  Format format_ = Format::npy;
  bool is_literal_ = false;
  bool is_folder_ = false;
  bool is_line_ = false;
};

}  // namespace

Selection select_tensors(const std::string& word, const ReadOptions& options, Role role) {
  return Opening(word, options, role).selection();
}

void Selection::finish() const {
  for (const auto& set : sets) set->finish();
}

const Selected& only_tensor(const Selection& selection) {
  const auto& tensors = selection.tensors;
  if (tensors.size() == 1) return tensors.front();
  if (tensors.empty())
    throw Error(concat(printable(selection.name), ": found no tensor, expected one"));
  // One of the first that can be read, for the hint.
  const auto some = tensors.begin() + std::min<std::ptrdiff_t>(std::ssize(tensors), 20);
  const auto readable = std::find_if(tensors.begin(), some, [](const Selected& tensor) {
    return tensor.set->describe(tensor.index).shape.has_value();
  });
  throw SeveralTensors(
      concat(printable(selection.name), ": found ", tensors.size(), " tensors, ",
             short_list(tensors.size(), [&](std::size_t i) { return tensors[i].name; }),
             ", expected one"),
      readable == some ? "" : hint_to_name(selection.name, readable->name));
}

OpenedTensor open_tensor(const Selected& selected) {
  return {selected.set->open(selected.index), selected.format, selected.name, selected.captures};
}

OpenedTensor open_tensor(const std::string& word, const ReadOptions& options) {
  const Selection selection = select_tensors(word, options);
  return open_tensor(only_tensor(selection));
}

Selected TensorFinder::find(const std::string& word) {
  Selected found = only_tensor(Opening(word, options_, role_).selection(false));
  latest_ = found.set;
  return found;
}

std::variant<Selection, TensorLines> open_inputs(std::span<const std::string> words,
                                                 const ReadOptions& options) {
  if (words.size() == 1) {
    Opening opening(words.front(), options, Role::stream);
    if (opening.is_lines()) return opening.lines();
    return opening.selection();
  }
  Selection all;
  all.several = true;
  for (const std::string& word : words) {
    Selection selection = Opening(word, options, Role::stream).selection();
    if (all.name.empty()) all.name = selection.name;
    all.sets.insert(all.sets.end(), selection.sets.begin(), selection.sets.end());
    for (Selected& tensor : selection.tensors) {
      const bool has_name = !tensor.set->tensor_name(tensor.index).empty();
      tensor.title = has_name ? concat(tensor.set->name(), ':', tensor.name) : tensor.set->name();
      all.tensors.push_back(std::move(tensor));
    }
  }
  return all;
}

bool names_member_of_literal(std::string_view word) {
  return starts_literal(word) && colon_after_literal(word) != word.npos;
}

bool is_json_literal(const std::string& word) { return starts_literal(word) && !os::status(word); }

bool is_standard_input(std::string_view name) noexcept {
  return name == "-" || name.starts_with("-:");
}

}  // namespace lnorm
