#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "lnorm/core/error.hpp"
#include "lnorm/core/in_parallel.hpp"
#include "lnorm/core/pattern.hpp"
#include "lnorm/io/format.hpp"
#include "lnorm/io/tensor_set.hpp"
#include "lnorm/io/tensor_source.hpp"

// What the user names, as tensors:
//   FILE          a file, "-" for standard input, or a folder; a file that exists under the whole name wins
//   FILE:NAME     a tensor of a file that holds several (.npz, .safetensors, its index.json, .pt, a JSON object),
//                 or of a folder; the number of a line of JSON Lines
//   FILE:PATTERN  those whose names match (pattern.hpp); a literal name wins
//   JSON          an array or an object itself, in the place of FILE
// The content decides the format, then the extension. All throw Error.
namespace lnorm {

// A file has no tensor of the name that was asked for; the hint names the nearest.
class MissingTensor : public Error {
 public:
  using Error::Error;
};

// A file has several tensors where one was asked for; the hint names one.
class SeveralTensors : public Error {
 public:
  using Error::Error;
};

// One tensor of a set, by the name that was asked for.
struct Selected {
  std::shared_ptr<const TensorSet> set;
  std::size_t index = 0;
  Format format = Format::npy;
  std::string name;   // in the set; where it has none there, the file's without its extension
  std::string title;  // for a report: the name, or with that of the file if several are named
  Captures captures;  // what the *s of the pattern stood for
};

struct Selection {
  std::string name;               // for messages: the first file, or standard input
  std::vector<Selected> tensors;  // in the order in which they are listed
  bool is_file = false;  // a file or folder as it is: neither a tensor of it nor a pattern is named
  bool several = false;  // results go by name: of a pattern, a folder, a file of not just one
  std::vector<std::shared_ptr<const TensorSet>> sets;  // that the tensors are of

  // After the last of its tensors: reads what is left of pipes. Throws Error if one does not end as it should.
  void finish() const;
};

// What a word of the command line is. A stream is an input that may be JSON Lines, one tensor after another; what is
// auxiliary is no input, and told by its content alone: --weight.
enum class Role { stream, input, auxiliary };

// A file without a tensor gives an empty selection.
Selection select_tensors(const std::string& word, const ReadOptions& options,
                         Role role = Role::auxiliary);

// The tensor that a selection of one has. Throws Error, which lists the names, if there is another number of them.
const Selected& only_tensor(const Selection& selection);

struct OpenedTensor {
  std::unique_ptr<TensorSource> source;
  Format format = Format::npy;
  std::string name;  // as in Selected
  Captures captures;
  // What stands around it, if it is a member of a line of JSON Lines.
  std::string before = {};
  std::string after = {};
};

// Source and name of a tensor that is to be read now.
OpenedTensor open_tensor(const Selected& selected);

// The only tensor that a word names.
OpenedTensor open_tensor(const std::string& word, const ReadOptions& options);

// Finds tensors again and again, by names that are no patterns: the file that was named last stays open.
class TensorFinder {
 public:
  explicit TensorFinder(ReadOptions options, Role role = Role::auxiliary)
      : options_(std::move(options)), role_(role) {}

  Selected find(const std::string& word);

 private:
  ReadOptions options_;
  Role role_;
  std::shared_ptr<const TensorSet> latest_;
};

// JSON Lines: gives each tensor as its line comes, one at each call, and then nothing. "FILE:NAME" is that
// member of every line.
using TensorLines = std::function<std::optional<OpenedTensor>()>;

// The inputs of a command, one or several words.
std::variant<Selection, TensorLines> open_inputs(std::span<const std::string> words,
                                                 const ReadOptions& options);

// Whether a word is JSON, and no file is called so.
bool is_json_literal(const std::string& word);
// Whether a word is JSON and the name of a member behind it.
bool names_member_of_literal(std::string_view word);

// "-" and "-:MEMBER".
bool is_standard_input(std::string_view name) noexcept;

}  // namespace lnorm
