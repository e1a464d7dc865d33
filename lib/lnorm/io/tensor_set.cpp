#include "lnorm/io/tensor_set.hpp"

#include <string_view>

#include "lnorm/core/text.hpp"
#include "lnorm/io/raw_tensor.hpp"

namespace lnorm {

namespace {

class SingleTensor final : public TensorSet {
 public:
  SingleTensor(std::unique_ptr<TensorSource> source, std::string tensor_name)
      : TensorSet(source->info().name),
        info_(source->info()),
        tensor_name_(std::move(tensor_name)),
        source_(std::move(source)) {}

  std::size_t size() const override { return 1; }
  std::string tensor_name(std::size_t) const override { return tensor_name_; }
  TensorInfo info(std::size_t) const override { return info_; }
  std::unique_ptr<TensorSource> open(std::size_t) const override { return std::move(source_); }
  bool is_pipe() const override { return true; }

 private:
  TensorInfo info_;
  std::string tensor_name_;
  mutable std::unique_ptr<TensorSource> source_;
};

}  // namespace

void TensorSet::fail(const std::string& what, std::string hint) const {
  throw Error(concat(printable(name_), ": ", what), std::move(hint));
}

std::optional<std::size_t> TensorSet::find(const std::string& tensor_name) const {
  constexpr std::string_view kExtension = ".npy";
  const auto found = find_exactly(tensor_name);
  if (found || !tensor_name.ends_with(kExtension)) return found;
  return find_exactly(tensor_name.substr(0, tensor_name.size() - kExtension.size()));
}

std::optional<std::size_t> TensorSet::find_exactly(const std::string& tensor_name) const {
  // Whoever asks once is not worth an index.
  if (!std::exchange(was_searched_, true)) {
    for (std::size_t i = 0; i < size(); ++i) {
      if (this->tensor_name(i) == tensor_name) return i;
    }
    return std::nullopt;
  }
  if (indices_.empty()) {
    for (std::size_t i = 0; i < size(); ++i) indices_.emplace(this->tensor_name(i), i);
  }
  const auto found = indices_.find(tensor_name);
  if (found == indices_.end()) return std::nullopt;
  return found->second;
}

Member TensorSet::describe(std::size_t index) const {
  const std::string name = tensor_name(index);
  try {
    const TensorInfo tensor = info(index);
    return {name, std::string(lnorm::name(tensor.dtype)), tensor.shape, data_bytes(tensor)};
  } catch (const SystemError&) {
    throw;
  } catch (const UnsupportedDType& unsupported) {
    return {name, unsupported.dtype(), {}, {}};
  } catch (const Error& error) {
    return {name, concat("(", error.what(), ")"), {}, {}};
  }
}

std::unique_ptr<TensorSet> set_of(std::unique_ptr<TensorSource> source, std::string tensor_name) {
  return std::make_unique<SingleTensor>(std::move(source), std::move(tensor_name));
}

}  // namespace lnorm
