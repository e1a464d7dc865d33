#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "lnorm/core/error.hpp"
#include "lnorm/core/tensor_info.hpp"
#include "lnorm/io/tensor_source.hpp"

namespace lnorm {

// A header is well formed, but of a dtype that is not read: "object", "complex".
class UnsupportedDType : public Error {
 public:
  UnsupportedDType(std::string dtype, std::string message, std::string hint = {},
                   Remedy remedy = {})
      : Error(std::move(message), std::move(hint), std::move(remedy)), dtype_(std::move(dtype)) {}
  const std::string& dtype() const noexcept { return dtype_; }

 private:
  std::string dtype_;
};

// A line of a listing.
struct Member {
  std::string name;
  std::string dtype;                       // of lnorm; what it is instead where that cannot be read
  std::optional<Shape> shape;              // where it is known
  std::optional<std::int64_t> bytes = {};  // that the elements take in the file, the same
};

// The tensors of a file, or of a folder. What lists them has been read; their elements are read by open.
class TensorSet {
 public:
  // name: for messages, "x.npz" or "standard input".
  explicit TensorSet(std::string name) : name_(std::move(name)) {}
  TensorSet(const TensorSet&) = delete;
  TensorSet& operator=(const TensorSet&) = delete;
  virtual ~TensorSet() = default;

  const std::string& name() const noexcept { return name_; }

  // Throws Error, which begins with the name.
  [[noreturn]] void fail(const std::string& what, std::string hint = {}) const;

  // Tensors are numbered in the order in which they are listed.
  virtual std::size_t size() const = 0;

  // Whether its tensors go by their names, which one of a file alone does not.
  virtual bool has_several() const { return size() != 1; }

  // Its name in the set; empty for a tensor that has none.
  virtual std::string tensor_name(std::size_t index) const = 0;

  // The first tensor of that name; of an .npz also by the name that its member has, NAME.npy.
  std::optional<std::size_t> find(const std::string& tensor_name) const;

  // What its header says. Throws UnsupportedDType or another Error if it cannot be read.
  virtual TensorInfo info(std::size_t index) const = 0;

  // Throws Error. The source may outlive the set, and there may be several at a time, unless is_pipe().
  virtual std::unique_ptr<TensorSource> open(std::size_t index) const = 0;

  // Tensors are read fastest in ascending order of this number, and from a pipe in no other.
  virtual std::int64_t place(std::size_t index) const { return static_cast<std::int64_t>(index); }

  // Whether every tensor can be opened once only, in the order of place, when the one before is done with.
  virtual bool is_pipe() const { return false; }

  // Follows the last tensor: reads what is left of a pipe. Throws Error if the file does not end as it should.
  virtual void finish() const {}

  // A listing has this line, whether the tensor can be read or not.
  virtual Member describe(std::size_t index) const;

 private:
  std::optional<std::size_t> find_exactly(const std::string& tensor_name) const;

  std::string name_;
  mutable bool was_searched_ = false;
  // The tensors by name, made when a second one is searched for.
  mutable std::unordered_map<std::string, std::size_t> indices_;
};

// A set of one tensor that is open already, which open gives once.
std::unique_ptr<TensorSet> set_of(std::unique_ptr<TensorSource> source, std::string tensor_name);

}  // namespace lnorm
