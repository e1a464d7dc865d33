#pragma once

#include <cstdint>
#include <string>

#include "lnorm/core/dtype.hpp"
#include "lnorm/core/number.hpp"
#include "lnorm/core/shape.hpp"

// Numbers as reports write them.
namespace lnorm {

// "2x3x4"; "()" for no dimensions.
std::string shape_text(const Shape& shape);

// "(1,2,3)".
std::string index_text(const Shape& index);

// The shortest decimal that reads back as the same value of its dtype, of float16 and bfloat16 as float32: 23.5, 23,
// 1e-05; nan, inf, -inf.
std::string value_text(Number value, DType dtype);
std::string value_text(double value);

// The shortest of at most that many significant digits: 7.96e-05.
std::string rounded_text(double value, int digits);

}  // namespace lnorm
