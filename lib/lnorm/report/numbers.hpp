#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "lnorm/core/axes.hpp"
#include "lnorm/core/dtype.hpp"
#include "lnorm/core/number.hpp"
#include "lnorm/core/shape.hpp"
#include "lnorm/core/tensor_info.hpp"
#include "lnorm/measure/top.hpp"

// Numbers as reports write them.
namespace lnorm {

// "axis 2", "axes 0, 1 and 2", "no axes".
std::string axes_text(const Axes& axes);
// "normalized over axis 1", "normalized in 3 groups of axis 1".
std::string normalized_text(const TensorInfo& x, const Axes& axes);

// "x.npy: float32, shape (2, 3)".
std::string tensor_text(const TensorInfo& x);

// The index of a number in C order: along one axis it is that number, along several it is written as a shape is.
std::string index_text(std::int64_t number, const Shape& shape);

// Which rows of how many: "rows 5 to 7 of 4096", "row 2 (0, 2) of 6", "none of 4 rows".
std::string rows_text(const RowSlice& slice);

// The shortest decimal that reads back as the same value of its dtype, of narrower floats as of float32: 23.5, 23,
// 1e-05; nan, inf, -inf.
std::string value_text(Number value, DType dtype);
std::string value_text(double value);
void append_value(double value, std::string& text);  // the same, without another string

// The shortest of at most that many significant digits: 7.96e-05, 0.5.
std::string rounded_text(double value, int digits);

// That many digits after the point: 0.50. Zero has no sign.
std::string fixed_text(double value, int decimals);

// That many significant digits, for a column of numbers whose points are aligned: 0.500, 23.5,
// 1.00, and all digits before the point of 23456. 0 is exactly 0. A power of ten stands there from
// 1e6 on and below 1e-4, and its factor has no zeros at its end: 1.5e-08.
std::string significant_text(double value, int digits);

// How large a part of the whole is: "12.5%". Only nothing is "0%", only all is "100%".
std::string percentage_text(std::int64_t part, std::int64_t whole);

// How much that is, to three digits: "768 B", "1.50 KiB".
std::string bytes_text(std::int64_t bytes);

// "largest |mean|".
std::string_view top_words(TopBy by);

// "the 5 rows of the largest |mean|".
std::string top_text(const Top& top, std::string_view noun, std::int64_t of);

// A label of text as one of a page.
std::string capitalized(std::string label);

// "biased variances (ddof 0)".
std::string variances_text(std::int64_t ddof);

// The steps of a norm that are rounded: "sum", "xhat", "product".
std::vector<std::string> rounded_steps(bool sum, const Rounding& rounding);

}  // namespace lnorm
