#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "support/oracle.hpp"

// The correctly rounded results of the backward pass of layer normalization, by another route than the library's:
// each is rational + factor * root, all three of them exact, and more and more digits of the root until its bounds
// give the same result.
namespace oracle {

struct Surd {
  Fraction rational;
  Fraction factor;  // 0 where the root is a fraction
  std::shared_ptr<const Root> root;
};

double rounded(const Surd& value, lnorm::DType dtype);
// floor(log2(|value|)), of a value that is not 0.
std::int64_t exponent_of(const Surd& value);
// In multiples of 2^exponent, truncated toward zero.
Integer truncated(const Surd& value, std::int64_t exponent);

// Mean and 1/s that a forward pass saved.
struct Saved {
  Number mean;
  Number rstd;
};

class GradientRow {
 public:
  // weight: one for each element, or one for all, or empty. plus_one: weight is 1 + weight.
  GradientRow(std::span<const Number> x, std::span<const Number> dy, std::span<const Number> weight,
              bool plus_one, const lnorm::Formula& formula, const std::optional<Saved>& saved = {});

  // Whether x-hat is a number; whether dx is one, too.
  bool is_normal() const { return is_normal_; }
  bool has_gradient() const { return has_gradient_; }

  // Where there is a gradient.
  Surd dx(std::size_t i) const;
  // Where x-hat is a number.
  Surd xhat(std::size_t i) const;

  const std::vector<Number>& dy() const { return dy_; }

 private:
  void find_divisor(const Fraction& variance, const lnorm::Formula& formula);
  Fraction deviation(std::size_t i) const;  // x - mean

  bool is_normal_ = true;
  bool has_gradient_ = true;
  Integer n_;
  Integers x_;
  Integers g_;
  std::vector<Number> dy_;
  Fraction mean_;
  Fraction g_mean_;   // 0 by RMS
  Fraction product_;  // sum(g * (x - mean)) / (n - ddof)
  Surd inverse_;      // 1 / s
  Surd slope_;        // product / (s^2 * t)
};

// Sums over rows.
class Columns {
 public:
  // is_uniform: one sum of each kind, over all columns.
  Columns(std::size_t columns, bool is_uniform = false);

  void add(const GradientRow& row, int times = 1);

  double dweight(std::size_t column, lnorm::DType dtype) const;
  double dbias(std::size_t column, lnorm::DType dtype) const;

 private:
  struct Term {
    Surd value;
    int times;
  };
  struct Column {
    bool has_dweight = true;
    bool has_dbias = true;
    std::vector<Term> terms;
    Fraction dbias;
  };

  bool is_uniform_;
  std::vector<Column> columns_;
};

}  // namespace oracle
