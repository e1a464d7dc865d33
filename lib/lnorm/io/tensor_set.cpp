#include "lnorm/io/tensor_set.hpp"

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

Member TensorSet::describe(std::size_t index) const {
  const std::string name = tensor_name(index);
  try {
    const TensorInfo tensor = info(index);
    return {name, std::string(lnorm::name(tensor.dtype)), tensor.shape, data_bytes(tensor)};
  } catch (const SystemError&) {
    throw;
  } catch (const ForeignDType& foreign) {
    return {name, foreign.dtype(), {}, {}};
  } catch (const Error& error) {
    return {name, concat("(", error.what(), ")"), {}, {}};
  }
}

std::unique_ptr<TensorSet> set_of(std::unique_ptr<TensorSource> source, std::string tensor_name) {
  return std::make_unique<SingleTensor>(std::move(source), std::move(tensor_name));
}

}  // namespace lnorm
