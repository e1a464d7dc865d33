#pragma once

#include <bit>
#include <cstddef>
#include <functional>
#include <random>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "lnorm/core/dtype.hpp"
#include "lnorm/core/float16.hpp"
#include "support/oracle.hpp"

// The rows that the property tests try: as bytes for the library, as exact numbers for the oracle.
namespace property {

using Random = std::mt19937_64;

double uniform(Random& random);  // between -1 and 1
double normal(Random& random);

double largest_finite(lnorm::DType dtype);
double smallest_positive(lnorm::DType dtype);

// What a row of floats is made of; the values are rounded to the dtype afterwards.
struct Recipe {
  std::string name;
  std::function<double(Random&, lnorm::DType, int index, int length)> element;
};

// Rows that are hard on sums, means and variances.
const std::vector<Recipe>& float_recipes();

extern const Recipe kNormal;

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
Data integers(lnorm::DType dtype, std::span<const lnorm::Int128> values);
Data integers(lnorm::DType dtype, int length, int spread_bits, Random& random);

// Elements of a float dtype, as the library writes them.
double read(const std::byte* from, lnorm::DType dtype);
std::vector<double> read_all(std::span<const std::byte> from, lnorm::DType dtype);

// The same elements in the other byte order.
std::vector<std::byte> swapped(std::span<const std::byte> bytes, lnorm::DType dtype);
inline constexpr std::endian kOtherByteOrder =
    std::endian::native == std::endian::little ? std::endian::big : std::endian::little;

}  // namespace property
