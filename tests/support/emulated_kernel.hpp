#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "lnorm/core/dtype.hpp"
#include "lnorm/core/options.hpp"

// Layer normalization as kernels compute it, right and wrong, in arithmetic of their own: nothing here is lnorm's but the names
// of dtypes. Each operation is rounded by itself.
namespace emulated {

// How a sum is added up.
struct Order {
  enum class Kind { loop, pairwise, blocks, welford };
  Kind kind = Kind::loop;
  std::int64_t block = 1;  // of blocks
};

struct Kernel {
  lnorm::DType arithmetic = lnorm::DType::float32;
  Order order;
  lnorm::DType output = lnorm::DType::float32;
  lnorm::DType input = lnorm::DType::float32;
  lnorm::Formula formula;
  std::string wrong;  // an id of the list of wrong kernels, or of those outside of it; empty: right
  bool folds_mean = false;  // y = x / s + (-mean / s), as many CPU kernels
};

// rows x n numbers, row after row.
struct Tensor {
  std::int64_t rows = 0;
  std::int64_t n = 0;
  std::vector<double> numbers;

  double at(std::int64_t r, std::int64_t i) const {
    return numbers[static_cast<std::size_t>(r * n + i)];
  }
};

// weight, bias: n numbers each; empty: there is none.
Tensor run(const Kernel& kernel, const Tensor& x, const std::vector<double>& weight,
           const std::vector<double>& bias);

// The nearest number of a float dtype, ties to even.
double rounded(double value, lnorm::DType dtype);

// Numbers that rounding makes of another one, or of these bits.
double reread(double value, lnorm::DType dtype, lnorm::DType as);
double bytes_swapped(double value, lnorm::DType dtype);

// Kinds of inputs, from 0 on, in a dtype; nothing beyond the last kind.
std::string name_of_input(int kind);
Tensor input(int kind, std::int64_t rows, std::int64_t n, lnorm::DType dtype,
             std::mt19937_64& random);

// Kinds of affine parameters, from 0 on: none, ordinary, ones, large, near zero.
inline constexpr int kAffineKinds = 5;
struct Affine {
  std::vector<double> weight;
  std::vector<double> bias;
};
Affine affine(int kind, std::int64_t n, lnorm::DType dtype, std::mt19937_64& random);

}  // namespace emulated
