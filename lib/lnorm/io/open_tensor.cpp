#include "lnorm/io/open_tensor.hpp"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "lnorm/core/error.hpp"
#include "lnorm/core/nearest.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/io/folder_set.hpp"
#include "lnorm/io/json/json_lines.hpp"
#include "lnorm/io/json/json_tensor.hpp"
#include "lnorm/io/json/json_text.hpp"
#include "lnorm/io/members.hpp"
#include "lnorm/io/npy/npy.hpp"
#include "lnorm/io/onnx/onnx.hpp"
#include "lnorm/io/os.hpp"
#include "lnorm/io/raw_tensor.hpp"
#include "lnorm/io/safetensors/safetensors.hpp"
#include "lnorm/io/safetensors/sharded.hpp"
#include "lnorm/io/torch/torch.hpp"
#include "lnorm/io/zip/npz.hpp"
#include "lnorm/io/zip/zip_archive.hpp"

namespace lnorm {

namespace {

constexpr std::string_view kElementsAlone =
    "raw elements, not text, are --from raw --as float32 --shape D[,D...]";

struct TensorName {
  std::string path;
  std::optional<std::string> member;
};

TensorName split_name(const std::string& name) {
  if (name == "-" || os::status(name)) return {name, {}};
  for (std::size_t colon = name.rfind(':'); colon != std::string::npos && colon > 0;
       colon = name.rfind(':', colon - 1)) {
    const std::string path = name.substr(0, colon);
    if (path == "-" || os::status(path)) return {path, name.substr(colon + 1)};
  }
  return {name, {}};
}

bool is_folder(const std::string& path) {
  const auto status = os::status(path);
  return path != "-" && status && S_ISDIR(status->st_mode);
}

bool is_number(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

// Of a command that has --from, which is for its inputs, and for nothing beside them.
enum class Role { input, other };

// What a word names, as far as it can be told without looking for a tensor.
class Opening {
 public:
  Opening(const std::string& word, const ReadOptions& options, Role role)
      : name_(split_name(word)), options_(options), role_(role) {
    if (is_folder(name_.path) && !options.from) return;
    bytes_ = open_file(name_.path);
    format_ = options.from ? *options.from : detect();
  }

  // Whether it is every line of JSON Lines, or a member of every line.
  bool is_lines() const {
    return format_ == Format::jsonl && (!name_.member || !is_number(*name_.member));
  }

  TensorLines lines() {
    const auto lines = std::make_shared<JsonLines>(std::move(bytes_));
    if (!name_.member) {
      return [lines, label = label()]() -> std::optional<OpenedTensor> {
        auto source = lines->next();
        if (!source) return std::nullopt;
        return OpenedTensor{std::move(source), Format::jsonl, label, {}, "", ""};
      };
    }
    return [lines, member = *name_.member]() -> std::optional<OpenedTensor> {
      auto found = lines->next_member(member);
      if (!found) return std::nullopt;
      return OpenedTensor{std::move(found->tensor), Format::jsonl,          member, {},
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
      if (name.empty() && !is_named) name = label();
      selection.tensors.push_back({set, index, format_, name, name, std::move(captures)});
    };
    const auto literal = is_named ? set->find(*name_.member) : std::nullopt;
    if (!is_named) {
      for (std::size_t i = 0; i < set->size(); ++i) select(i, {});
      selection.several = set->size() != 1 || is_folder_;
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
      throw Error(error.what(),
                  role_ == Role::input
                      ? std::string(kElementsAlone)
                      : "elements alone, in Python: "
                        "numpy.save('x.npy', numpy.fromfile('x.bin', 'float32').reshape(D, D))");
    }
  }

  // For JSON that is JSON Lines.
  std::string hint_for_lines() const {
    if (role_ == Role::input) return "--from jsonl";
    if (name_.path == "-") return "write it to a file x.jsonl, and name a line of it x.jsonl:1";
    const auto renamed = std::filesystem::path(name_.path).replace_extension(".jsonl").string();
    return concat("name it .jsonl, and a line of it ", shell_word(concat(renamed, ":1")));
  }

  std::unique_ptr<TensorSet> open_json_file() {
    if (is_index_of_shards(name_.path)) return open_shards(std::move(bytes_), name_.path);
    try {
      return open_json(std::move(bytes_), options_.in_parallel);
    } catch (const MoreLines& error) {
      throw Error(error.what(), hint_for_lines());
    } catch (const LooseNumbers& error) {
      if (role_ != Role::input) throw;
      throw Error(error.what(), concat(error.hint(), "; ", kElementsAlone));
    }
  }

  std::shared_ptr<const TensorSet> open_set() {
    if (!bytes_) {
      is_folder_ = true;
      return open_folder(name_.path, [options = options_](const std::string& path) {
        return Opening(path, options, Role::other).open_set();
      });
    }
    switch (format_) {
      case Format::npz: {
        auto archive = std::make_shared<const ZipArchive>(std::move(bytes_));
        if (is_torch(*archive)) return open_torch(std::move(archive));
        return open_npz(std::move(archive), options_.as);
      }
      case Format::safetensors:
        return open_safetensors(std::move(bytes_));
      case Format::json:
        return open_json_file();
      case Format::jsonl:
        is_line_ = true;
        format_ = Format::json;  // of a line
        return set_of(JsonLines(std::move(bytes_)).only(name_.member), "");
      case Format::pb:
        return open_onnx(std::move(bytes_));
      case Format::raw:
        return set_of(open_raw_file(), "");
      default:
        return set_of(open_npy(std::move(bytes_), options_.as), "");
    }
  }

  std::unique_ptr<TensorSource> open_raw_file() {
    if (!options_.as || !options_.shape) {
      throw Error(concat(printable(bytes_->name()), ": a raw file needs a dtype and a shape"));
    }
    TensorInfo info{bytes_->name(), *options_.as, *options_.shape, options_.byte_order};
    return open_raw(std::move(bytes_), std::move(info), options_.offset);
  }

  // What a tensor without a name is called after.
  std::string label() const {
    return name_.path == "-" ? "x" : std::filesystem::path(name_.path).stem().string();
  }

  [[noreturn]] void fail_to_find(const TensorSet& set, bool has_patterns) const {
    const std::string member = short_name(*name_.member);
    if (set.size() == 1 && set.tensor_name(0).empty()) {
      throw Error(concat(printable(set.name()),
                         ": holds one tensor without a name, found ':", member, "' after it"));
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
  std::unique_ptr<ByteSource> bytes_;  // none for a folder
  Format format_ = Format::npy;
  bool is_folder_ = false;
  bool is_line_ = false;
};

}  // namespace

Selection select_tensors(const std::string& word, const ReadOptions& options) {
  return Opening(word, options, Role::other).selection();
}

void Selection::finish() const {
  for (const auto& set : sets) set->finish();
}

const Selected& only_tensor(const Selection& selection) {
  const auto& tensors = selection.tensors;
  if (tensors.size() == 1) return tensors.front();
  // One of the first that can be read, for the hint.
  const auto some = tensors.begin() + std::min<std::ptrdiff_t>(std::ssize(tensors), 20);
  const auto readable = std::find_if(tensors.begin(), some, [](const Selected& tensor) {
    return tensor.set->describe(tensor.index).shape.has_value();
  });
  throw Error(concat(printable(selection.name), ": found ", tensors.size(), " tensors, ",
                     short_list(tensors.size(), [&](std::size_t i) { return tensors[i].name; }),
                     ", expected one"),
              readable == some ? "" : hint_to_name(selection.name, readable->name));
}

OpenedTensor open_tensor(const Selected& selected) {
  return {selected.set->open(selected.index),
          selected.format,
          selected.name,
          selected.captures,
          "",
          ""};
}

OpenedTensor open_tensor(const std::string& word, const ReadOptions& options) {
  const Selection selection = select_tensors(word, options);
  return open_tensor(only_tensor(selection));
}

Selected TensorFinder::find(const std::string& word) {
  const TensorName name = split_name(word);
  if (set_ && name.member && name.path == path_) {
    if (const auto index = set_->find(*name.member)) {
      return {set_, *index, format_, *name.member, *name.member, {}};
    }
  }
  Selected found = only_tensor(Opening(word, options_, Role::other).selection(false));
  set_ = name.member ? found.set : nullptr;
  path_ = name.path;
  format_ = found.format;
  return found;
}

std::variant<Selection, TensorLines> open_inputs(std::span<const std::string> words,
                                                 const ReadOptions& options) {
  if (words.size() == 1) {
    Opening opening(words.front(), options, Role::input);
    if (opening.is_lines()) return opening.lines();
    return opening.selection();
  }
  Selection all;
  all.several = true;
  for (const std::string& word : words) {
    Selection selection = Opening(word, options, Role::input).selection();
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

bool is_standard_input(std::string_view name) noexcept {
  return name == "-" || name.starts_with("-:");
}

}  // namespace lnorm
