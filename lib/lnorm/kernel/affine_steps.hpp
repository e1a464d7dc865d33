#pragma once

#include <cstdint>

#include "lnorm/core/dtype.hpp"
#include "lnorm/kernel/affine.hpp"
#include "lnorm/kernel/layer_norm.hpp"
#include "lnorm/kernel/rows.hpp"

// What follows where results are rounded before they are multiplied by weight, or before bias is added.
namespace lnorm {

// y * weight + bias, the exact value rounded once to dtype; weight and bias are those of an index. An exact zero is +0,
// and zeros among y and bias have no sign. What is not finite acts by IEEE's rules. by_integers: by them alone.
double take_step(const AffineStep& step, std::int64_t index, double y, DType dtype,
                 bool by_integers = false);

// Takes all steps of affine for count elements of a row, in place. number: of weight and bias, which the first one has, and
// all of them where elements repeat it.
void take_steps(const Backend& backend, const Affine& affine, const RowsOut& y, std::int64_t count,
                std::int64_t number);

}  // namespace lnorm
