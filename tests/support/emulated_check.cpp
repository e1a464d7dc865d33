#include "support/emulated_check.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "lnorm/core/chunk.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/kernel/layer_norm.hpp"

namespace emulated {

namespace {

using lnorm::DType;

std::vector<std::byte> encoded(const std::vector<double>& numbers, DType dtype) {
  std::vector<std::byte> bytes(numbers.size() * item_size(dtype));
  lnorm::store(numbers.data(), std::ssize(numbers), dtype, bytes.data());
  return bytes;
}

class Source final : public lnorm::RandomAccessSource {
 public:
  Source(const char* name, const Tensor& tensor, DType dtype)
      : RandomAccessSource({name, dtype, {tensor.rows, tensor.n}}),
        bytes_(encoded(tensor.numbers, dtype)) {}

  void read_at(std::int64_t position, std::span<std::byte> to) const override {
    std::memcpy(to.data(), bytes_.data() + position, to.size());
  }

 private:
  std::vector<std::byte> bytes_;
};

lnorm::AffineTerm term_of(const std::vector<double>& numbers) {
  if (numbers.empty()) return {};
  const lnorm::TensorInfo info{"", DType::float64, {std::ssize(numbers)}};
  return {info, encoded(numbers, DType::float64), false};
}

template <class T, std::size_t count>
const T& one_of(const T (&choices)[count], std::mt19937_64& random) {
  return choices[random() % count];
}

}  // namespace

lnorm::Check check(const Tensor& x, DType x_dtype, const Tensor& y, const Kernel& kernel,
                   const lnorm::Formula& formula, const Affine& affine) {
  Source x_source("x", x, x_dtype);
  Source y_source("y", y, kernel.output);
  const lnorm::AffineTerm weight = term_of(affine.weight);
  const lnorm::AffineTerm bias = term_of(affine.bias);
  const lnorm::Affine both(weight, bias);
  const lnorm::Plan plan = lnorm::make_plan(x_source.info(), {.formula = formula}, kernel.output,
                                            {.whole = true, .ordered = true});
  const lnorm::CheckInputs inputs{
      .x = x_source, .actual = y_source, .weight = weight, .bias = bias, .affine = both};
  lnorm::CheckOptions options;
  options.arithmetic = kernel.arithmetic;
  options.kernels = [](std::string_view) { return true; };
  return lnorm::check(inputs, plan, lnorm::backends().front(), options, {.threads = 1});
}

RightCase right_case(std::mt19937_64& random) {
  static constexpr DType kDTypes[] = {DType::float16, DType::bfloat16, DType::float32,
                                      DType::float64};
  static constexpr DType kInputs[] = {DType::float16, DType::bfloat16, DType::float32};
  static constexpr Order kOrders[] = {{Order::Kind::loop},       {Order::Kind::pairwise},
                                      {Order::Kind::blocks, 8},  {Order::Kind::blocks, 32},
                                      {Order::Kind::blocks, 64}, {Order::Kind::blocks, 256},
                                      {Order::Kind::welford}};
  static constexpr std::int64_t kLengths[] = {1,   2,   3,   5,    7,    16,   33,    64,
                                              100, 200, 768, 1025, 2048, 4096, 16384, 65536};
  RightCase result;
  result.n = one_of(kLengths, random);
  result.rows = std::clamp<std::int64_t>(40000 / result.n, 2, 64);
  result.kernel.arithmetic = one_of(kDTypes, random);
  result.kernel.order = one_of(kOrders, random);
  result.kernel.output = one_of(kDTypes, random);
  result.kernel.folds_mean = random() % 4 == 0;
  result.x_dtype = one_of(kInputs, random);
  int kinds = 0;
  while (!name_of_input(kinds).empty()) ++kinds;
  result.input = static_cast<int>(random() % static_cast<unsigned>(kinds));
  result.affine = static_cast<int>(random() % kAffineKinds);
  const auto order = std::find_if(std::begin(kOrders), std::end(kOrders), [&](const Order& one) {
    return one.kind == result.kernel.order.kind && one.block == result.kernel.order.block;
  });
  result.name =
      lnorm::concat(name(result.kernel.arithmetic), ", order ", order - std::begin(kOrders), ", n ",
                    result.n, ", ", name_of_input(result.input), ", ", name(result.x_dtype), " to ",
                    name(result.kernel.output), ", affine ", result.affine,
                    result.kernel.folds_mean ? ", x / s - mean / s" : "");
  return result;
}

}  // namespace emulated
