#include "lnorm/io/open_tensor.hpp"

#include <filesystem>
#include <utility>

#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/io/json/json_lines.hpp"
#include "lnorm/io/json/json_tensor.hpp"
#include "lnorm/io/json/json_text.hpp"
#include "lnorm/io/npy/npy.hpp"
#include "lnorm/io/raw_tensor.hpp"
#include "lnorm/io/safetensors/safetensors.hpp"
#include "lnorm/io/zip/npz.hpp"

namespace lnorm {

namespace {

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

// What a tensor is called after that.
std::string label(const TensorName& name) {
  if (name.member) return *name.member;
  return name.path == "-" ? "x" : std::filesystem::path(name.path).stem().string();
}

// hint: what to do where JSON is JSON Lines.
template <class Open>
auto with_hint(const std::string& hint, Open open) {
  try {
    return open();
  } catch (const MoreLines& error) {
    throw Error(error.what(), hint);
  }
}

class Opening {
 public:
  Opening(const std::string& name, const ReadOptions& options)
      : name_(split_name(name)),
        options_(options),
        bytes_(open_file(name_.path)),
        format_(options.from ? *options.from : detect_format(*bytes_)) {}

  // Nothing where there is one tensor alone, by its format or by its name.
  std::optional<Members> members() {
    if (name_.member) return std::nullopt;
    if (format_ == Format::npz) return open_npz_members(std::move(bytes_), options_.as);
    if (format_ == Format::safetensors) return open_safetensors_members(std::move(bytes_));
    if (format_ != Format::json) return std::nullopt;
    json_ = std::make_unique<JsonDocument>(std::move(bytes_));
    return with_hint("--from jsonl", [&] { return json_->members(); });
  }

  TensorSequence tensors() {
    if (format_ != Format::jsonl || name_.member) {
      const auto left = with_hint(
          "--from jsonl", [&] { return std::make_shared<std::optional<OpenedTensor>>(opened()); });
      return [left] { return std::exchange(*left, std::nullopt); };
    }
    const auto lines = std::make_shared<JsonLines>(std::move(bytes_));
    return [lines, label = label(name_)]() -> std::optional<OpenedTensor> {
      auto source = lines->next();
      if (!source) return std::nullopt;
      return OpenedTensor{std::move(source), Format::jsonl, label};
    };
  }

  OpenedTensor tensor() {
    const bool has_name = name_.path != "-";
    const std::string hint =
        has_name ? concat("name it .jsonl, and a line of it ", shell_word(concat(renamed(), ":1")))
                 : "write it to a file x.jsonl, and name a line of it x.jsonl:1";
    return with_hint(hint, [&] { return opened(); });
  }

 private:
  std::string renamed() const {
    return std::filesystem::path(name_.path).replace_extension(".jsonl").string();
  }

  OpenedTensor opened() { return {source(), format_, label(name_)}; }

  std::unique_ptr<TensorSource> source() {
    if (format_ == Format::npz) return open_npz(std::move(bytes_), name_.member, options_.as);
    if (format_ == Format::safetensors) return open_safetensors(std::move(bytes_), name_.member);
    if (format_ == Format::json) {
      if (!json_) json_ = std::make_unique<JsonDocument>(std::move(bytes_));
      return std::exchange(json_, nullptr)->tensor(name_.member);
    }
    if (format_ == Format::jsonl) {
      format_ = Format::json;  // of a line
      return JsonLines(std::move(bytes_)).only(name_.member);
    }
    const bool is_raw = format_ == Format::raw;
    if (name_.member) {
      throw Error(concat(printable(bytes_->name()), is_raw ? ": a raw" : ": an .npy",
                         " file holds one tensor without a name, found ':",
                         printable(*name_.member), "' after it"));
    }
    if (is_raw) return raw_source();
    return open_npy(std::move(bytes_), options_.as);
  }

  std::unique_ptr<TensorSource> raw_source() {
    if (!options_.as || !options_.shape) {
      throw Error(concat(printable(bytes_->name()), ": a raw file needs a dtype and a shape"));
    }
    TensorInfo info{bytes_->name(), *options_.as, *options_.shape, options_.byte_order};
    return open_raw(std::move(bytes_), std::move(info), options_.offset);
  }

  TensorName name_;
  ReadOptions options_;
  std::unique_ptr<ByteSource> bytes_;
  std::unique_ptr<JsonDocument> json_;  // read already
  Format format_;
};

}  // namespace

OpenedTensor open_tensor(const std::string& name, const ReadOptions& options) {
  return Opening(name, options).tensor();
}

TensorSequence open_tensors(const std::string& name, const ReadOptions& options) {
  return Opening(name, options).tensors();
}

std::variant<TensorSequence, Members> open_tensors_or_members(const std::string& name,
                                                              const ReadOptions& options) {
  Opening opening(name, options);
  if (auto members = opening.members()) return *std::move(members);
  return opening.tensors();
}

bool is_standard_input(std::string_view name) noexcept {
  return name == "-" || name.starts_with("-:");
}

}  // namespace lnorm
