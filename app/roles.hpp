#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>

// The one table of roles: what the tensors beside the inputs are to a command. Which commands take one, and its help,
// are in the table of options.
namespace lnorm::app {

// In the order in which --from, --as and --offset count those that have a position, behind INPUT.
enum class TensorRole : std::size_t {
  dy,
  output,
  actual_dx,
  actual_dweight,
  actual_dbias,
  actual_mean,
  actual_rstd,
  actual_scale,
  actual_sum,
  baseline,
  mask,
  weight,
  bias,
  residual,
  mean,
  rstd,
  variance,
  given_scale
};

enum class ShapeRule {
  input,          // of the input
  sum,            // of the input; whoever plans a sum or a backward pass checks it
  broadcast,      // broadcasts to the input
  affine,         // of the axes of weight and bias, or a number
  one_or_affine,  // the same, or one number in any shape
  gradient,       // of the weight
  rows,           // a number for each row
  scales          // a number for each scale of quantized rows
};

enum class DTypeRule { any, floating };  // nothing says the scale of integers

enum class Naming {
  file,      // or a member of one
  position,  // the same; --from, --as and --offset may tell how it is read
  literal    // or a number, or JSON, in its place
};

struct TensorRoleRow {
  TensorRole role;
  std::string_view option;  // as messages call it
  ShapeRule shape;
  Naming naming;
  DTypeRule dtype = DTypeRule::any;
};

inline constexpr std::array<TensorRoleRow, 18> kRoles{{
    {TensorRole::dy, "--dy", ShapeRule::sum, Naming::position},
    {TensorRole::output, "OUTPUT", ShapeRule::input, Naming::position, DTypeRule::floating},
    {TensorRole::actual_dx, "--actual-dx", ShapeRule::input, Naming::position, DTypeRule::floating},
    {TensorRole::actual_dweight, "--actual-dweight", ShapeRule::gradient, Naming::position,
     DTypeRule::floating},
    {TensorRole::actual_dbias, "--actual-dbias", ShapeRule::gradient, Naming::position,
     DTypeRule::floating},
    {TensorRole::actual_mean, "--actual-mean", ShapeRule::rows, Naming::position},
    {TensorRole::actual_rstd, "--actual-rstd", ShapeRule::rows, Naming::position},
    {TensorRole::actual_scale, "--actual-scale", ShapeRule::scales, Naming::position},
    {TensorRole::actual_sum, "--actual-sum", ShapeRule::input, Naming::position,
     DTypeRule::floating},
    {TensorRole::baseline, "--baseline", ShapeRule::input, Naming::file},
    {TensorRole::mask, "--mask", ShapeRule::broadcast, Naming::literal},
    {TensorRole::weight, "--weight", ShapeRule::affine, Naming::literal},
    {TensorRole::bias, "--bias", ShapeRule::affine, Naming::literal},
    {TensorRole::residual, "--residual", ShapeRule::sum, Naming::file},
    {TensorRole::mean, "--mean", ShapeRule::rows, Naming::literal},
    {TensorRole::rstd, "--rstd", ShapeRule::rows, Naming::literal},
    {TensorRole::variance, "--variance", ShapeRule::rows, Naming::literal},
    {TensorRole::given_scale, "--given-scale", ShapeRule::one_or_affine, Naming::literal},
}};

constexpr const TensorRoleRow& role_row(TensorRole role) {
  return kRoles[static_cast<std::size_t>(role)];
}

// The words that name tensors, by their roles.
using TensorWords = std::map<TensorRole, std::string>;

}  // namespace lnorm::app
