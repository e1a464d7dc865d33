#pragma once

#include <span>
#include <string>
#include <string_view>

#include "lnorm/diagnosis/gradient_variant.hpp"
#include "lnorm/diagnosis/variant.hpp"

// The one table of what kernels do wrong.
namespace lnorm {

// Which part of the formula is wrong. At most one of each part goes into a combination. sums are those over rows, of
// the backward pass.
enum class KernelPart { eps_place, eps_value, ddof, mean_or_division, affine, alone, sums };

// What decides whether a wrong kernel is another formula than the one asked for: options and shapes, no values.
struct KernelContext {
  const JudgeSetting& setting;
  const Shape& normalized_shape;
  bool has_weight = false;
  bool has_bias = false;
  bool has_residual = false;

  std::int64_t row_length() const { return std::ssize(setting.weight); }
};

// The same of a backward pass.
struct GradientContext {
  const GradientModel& model;
  Gradient of = Gradient::dx;
  bool has_weight = false;
  bool has_bias = false;

  std::int64_t row_length() const { return std::ssize(model.setting.weight); }
};

struct WrongKernel {
  std::string_view id;
  std::string_view words;    // follows "the kernel: "
  std::string_view options;  // of lnorm that give the same; empty if there are none
  KernelPart part;
  // Makes the variant so. False where that is what was asked for, or cannot be; always for what is backward alone.
  bool (*change)(Variant& variant, const KernelContext& context, double parameter);
  double parameter = 0;
  // The same of the backward pass; null where there is nothing of the kind.
  bool (*change_gradient)(GradientVariant& variant, const GradientContext& context,
                          double parameter) = nullptr;

  bool is_forward() const noexcept;
};

std::span<const WrongKernel> wrong_kernels() noexcept;

// The option of lnorm that gives an eps that is in no row.
std::string eps_option(std::string_view eps);

// The option that gives other axes, and their ids, with * for the axes.
std::string axes_option(std::string_view axes);
inline constexpr std::string_view kAxesId = "axes-*";

}  // namespace lnorm
