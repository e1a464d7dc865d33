#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <type_traits>

#include "lnorm/core/dtype.hpp"
#include "lnorm/core/small_float.hpp"
#include "lnorm/kernel/layer_norm.hpp"
#include "support/catch.hpp"
#include "support/elements.hpp"
#include "support/oracle.hpp"

// The rows that the property tests try: as bytes for the library, as exact numbers for the oracle.
namespace property {

using Random = std::mt19937_64;

using support::kInfinity;
using support::kNan;
using support::kOtherByteOrder;
using support::same_number;

inline constexpr std::array kFloats{lnorm::DType::float16, lnorm::DType::bfloat16,
                                    lnorm::DType::float32, lnorm::DType::float64};
inline constexpr std::array kFloat8s{lnorm::DType::float8_e4m3fn, lnorm::DType::float8_e5m2};
inline constexpr std::array kIntegers{
    lnorm::DType::boolean, lnorm::DType::int8,   lnorm::DType::int16,
    lnorm::DType::int32,   lnorm::DType::int64,  lnorm::DType::uint8,
    lnorm::DType::uint16,  lnorm::DType::uint32, lnorm::DType::uint64};

double uniform(Random& random);  // between -1 and 1
double normal(Random& random);

double largest_finite(lnorm::DType dtype);
double smallest_positive(lnorm::DType dtype);
double ulp_of_1(lnorm::DType dtype);  // of those in kFloats

// What a row of floats is made of; the values are rounded to the dtype afterwards.
struct Recipe {
  std::string name;
  std::function<double(Random&, lnorm::DType, int index, int length)> element;
};

// Rows that are hard on sums, means and variances.
const std::vector<Recipe>& float_recipes();

extern const Recipe kNormal;
extern const Recipe kEnds;  // of the dtype's range

struct Data {
  lnorm::DType dtype;
  std::vector<std::byte> bytes;
  std::vector<oracle::Number> numbers;
};

// The dtype's C++ type.
template <class T>
void append(Data& data, T element) {
  const auto bytes = std::as_bytes(std::span(&element, 1));
  data.bytes.insert(data.bytes.end(), bytes.begin(), bytes.end());
  if constexpr (!std::is_arithmetic_v<T>) {
    data.numbers.push_back({lnorm::to_double(element), 0, false});
  } else if constexpr (std::is_floating_point_v<T>) {
    data.numbers.push_back({static_cast<double>(element), 0, false});
  } else {
    data.numbers.push_back({0, element, true});
  }
}

// Rounded to data.dtype, a float.
void append_rounded(Data& data, double value);

Data floats(lnorm::DType dtype, std::span<const double> values);
Data floats(lnorm::DType dtype, const Recipe& recipe, int length, Random& random);
Data doubles(const std::vector<double>& values);
// Finds the recipe of float_recipes() that has this name.
const Recipe& recipe(const std::string& name);
Data integers(lnorm::DType dtype, std::span<const lnorm::Int128> values);
Data integers(lnorm::DType dtype, int length, int spread_bits, Random& random);

// All elements are that value but one, which is the next number of the dtype.
Data constant_but_for_one(lnorm::DType dtype, int length, double value);

// These rows have standard deviations that are fractions, and ones that are not.
extern const std::vector<std::vector<double>> kRootRows;

// Appends the elements of one tensor to those of the other.
void append(Data& data, const Data& more);

// A kernel takes the data as so many rows, which lie one after another.
lnorm::RowsIn rows_in(const Data& data, std::int64_t rows = 1);
// The parameter has all elements of the data, or is missing if there are none.
lnorm::AffineTerm term(const Data& data, bool plus_one = false);

// Returns what a kernel makes of rows.
std::vector<std::byte> normalized(const lnorm::Backend& backend, const lnorm::RowsIn& rows,
                                  lnorm::DType out, const lnorm::Affine& affine = {},
                                  const lnorm::Formula& formula = {},
                                  const lnorm::RowNumbersOut& stats = {});

// Returns what a kernel makes of rows by softmax.
std::vector<std::byte> softmax(const lnorm::RowsIn& rows, lnorm::DType out,
                               const lnorm::Backend& backend = lnorm::backends().front());

// Rows first to first + count of x.
lnorm::RowsIn some_rows(const lnorm::RowsIn& x, std::int64_t first, std::int64_t count);

// Calls see(rows, first) for so many rows of x at a time.
template <class See>
void in_calls(const lnorm::RowsIn& x, std::int64_t rows_a_call, See see) {
  for (std::int64_t first = 0; first < x.rows; first += rows_a_call) {
    see(some_rows(x, first, std::min(rows_a_call, x.rows - first)), first);
  }
}

// Fails at the first number that is not the expected one, where NaN equals NaN and zeros have signs.
void check_same(std::span<const double> actual, std::span<const double> expected);

// Holds what every kernel makes of a row, with statistics and without, against y, and mean and rstd against the exact row's.
void check_kernels(const Data& x, const lnorm::RowsOut& out, const lnorm::Affine& affine,
                   const lnorm::Formula& formula, const std::vector<double>& y,
                   const oracle::Row& exact);

// One place of eps, two times in three on the variance.
lnorm::EpsOn any_place(Random& random);

// Draws a formula that a row of that length may have.
lnorm::Formula any_formula(Random& random, std::int64_t length);

// Elements of a float dtype, as the library writes them.
double read(const std::byte* from, lnorm::DType dtype);
std::vector<double> read_all(std::span<const std::byte> from, lnorm::DType dtype);

// The same elements in the other byte order.
std::vector<std::byte> swapped(std::span<const std::byte> bytes, lnorm::DType dtype);
}  // namespace property
