#include "property/data.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace property {

using lnorm::DType;

double uniform(Random& random) { return std::uniform_real_distribution<double>(-1, 1)(random); }
double normal(Random& random) { return std::normal_distribution<double>()(random); }

double largest_finite(DType dtype) {
  if (dtype == DType::float8_e4m3fn) return 448;
  if (dtype == DType::float8_e5m2) return 57344;
  if (dtype == DType::float16) return 65504;
  if (dtype == DType::bfloat16) return 0x1.fep127;
  if (dtype == DType::float32) return std::numeric_limits<float>::max();
  return std::numeric_limits<double>::max();
}

double smallest_positive(DType dtype) {
  if (dtype == DType::float8_e4m3fn) return 0x1p-9;
  if (dtype == DType::float8_e5m2) return 0x1p-16;
  if (dtype == DType::float16) return 0x1p-24;
  if (dtype == DType::bfloat16) return 0x1p-133;
  if (dtype == DType::float32) return std::numeric_limits<float>::denorm_min();
  return std::numeric_limits<double>::denorm_min();
}

const std::vector<Recipe>& float_recipes() {
  static const std::vector<Recipe> recipes{
      {"normal", [](Random& r, DType, int, int) { return normal(r); }},
      {"uniform 1e-3", [](Random& r, DType, int, int) { return 1e-3 * uniform(r); }},
      {"large mean, small deviation",
       [](Random& r, DType d, int, int) {
         return (d == DType::float16 || d == DType::bfloat16 ? 1e3
                 : d == DType::float32                       ? 1e4
                                                             : 1e8) +
                normal(r);
       }},
      {"mean in the last places",
       [](Random& r, DType, int, int) { return 1 + 0x1p-22 * normal(r); }},
      {"1e30", [](Random& r, DType, int, int) { return 1e30 * uniform(r); }},
      {"near the largest",
       [](Random& r, DType d, int, int) { return largest_finite(d) * uniform(r); }},
      {"at the largest",
       [](Random&, DType d, int i, int) { return largest_finite(d) * (i % 3 == 0 ? -1 : 1); }},
      {"subnormal", [](Random& r, DType d, int,
                       int) { return smallest_positive(d) * std::round(500 * uniform(r)); }},
      {"from subnormal to the largest",
       [](Random& r, DType d, int, int) {
         const double exponent = (uniform(r) + 1) / 2;
         return std::pow(smallest_positive(d), exponent) *
                std::pow(largest_finite(d), 1 - exponent) * (uniform(r) < 0 ? -1 : 1);
       }},
      {"constant", [](Random&, DType, int, int) { return 0.1; }},
      {"constant zero", [](Random&, DType, int, int) { return 0.0; }},
      {"all but one constant",
       [](Random&, DType, int i, int n) { return i == n / 2 ? 0.25 : 0.1; }},
      {"one outlier", [](Random& r, DType, int i, int) { return i == 0 ? 1e4 : normal(r); }},
      {"alternating signs", [](Random&, DType, int i, int) { return i % 2 == 0 ? 3.0 : -3.0; }},
      {"alternating about a mean",
       [](Random&, DType, int i, int) { return i % 2 == 0 ? 1025 : 1023; }},
      {"rising", [](Random&, DType, int i, int) { return 0.37 * i; }},
  };
  return recipes;
}

const Recipe kNormal{"normal", [](Random& r, DType, int, int) { return normal(r); }};

void append_rounded(Data& data, double value) {
  if (data.dtype == DType::float8_e4m3fn) {
    append(data, lnorm::to_float8_e4m3(value));
  } else if (data.dtype == DType::float8_e5m2) {
    append(data, lnorm::to_float8_e5m2(value));
  } else if (data.dtype == DType::float16) {
    append(data, lnorm::to_float16(value));
  } else if (data.dtype == DType::bfloat16) {
    append(data, lnorm::to_bfloat16(value));
  } else if (data.dtype == DType::float32) {
    append(data, static_cast<float>(value));
  } else {
    append(data, value);
  }
}

Data floats(DType dtype, std::span<const double> values) {
  Data data{dtype, {}, {}};
  for (const double value : values) append_rounded(data, value);
  return data;
}

Data floats(DType dtype, const Recipe& recipe, int length, Random& random) {
  Data data{dtype, {}, {}};
  const double most = largest_finite(dtype);
  for (int i = 0; i < length; ++i) {
    append_rounded(data, std::clamp(recipe.element(random, dtype, i, length), -most, most));
  }
  return data;
}

Data integers(DType dtype, std::span<const lnorm::Int128> values) {
  Data data{dtype, {}, {}};
  lnorm::visit(dtype, [&](auto element) {
    using T = decltype(element);
    for (const lnorm::Int128 value : values) {
      if constexpr (std::is_same_v<T, bool>) {
        append(data, (value & 1) != 0);
      } else if constexpr (std::is_integral_v<T>) {
        append(data, static_cast<T>(value));
      }
    }
  });
  return data;
}

Data integers(DType dtype, int length, int spread_bits, Random& random) {
  const auto base = random();
  std::vector<lnorm::Int128> values;
  for (int i = 0; i < length; ++i) {
    values.push_back(static_cast<lnorm::Int128>(base + (random() >> (64 - spread_bits))));
  }
  return integers(dtype, values);
}

double read(const std::byte* from, DType dtype) {
  if (dtype == DType::float8_e4m3fn) {
    return lnorm::to_double(lnorm::Float8E4M3{static_cast<std::uint8_t>(*from)});
  }
  if (dtype == DType::float8_e5m2) {
    return lnorm::to_double(lnorm::Float8E5M2{static_cast<std::uint8_t>(*from)});
  }
  if (dtype == DType::float16) {
    lnorm::Float16 value;
    std::memcpy(&value, from, sizeof value);
    return lnorm::to_double(value);
  }
  if (dtype == DType::bfloat16) {
    lnorm::BFloat16 value;
    std::memcpy(&value, from, sizeof value);
    return lnorm::to_double(value);
  }
  if (dtype == DType::float32) {
    float value;
    std::memcpy(&value, from, sizeof value);
    return value;
  }
  double value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

std::vector<double> read_all(std::span<const std::byte> from, DType dtype) {
  std::vector<double> values;
  for (std::size_t i = 0; i < from.size(); i += lnorm::item_size(dtype)) {
    values.push_back(read(from.data() + i, dtype));
  }
  return values;
}

std::vector<std::byte> swapped(std::span<const std::byte> bytes, DType dtype) {
  std::vector<std::byte> result;
  const std::size_t size = lnorm::item_size(dtype);
  for (std::size_t i = 0; i < bytes.size(); i += size) {
    const auto element = bytes.subspan(i, size);
    result.insert(result.end(), element.rbegin(), element.rend());
  }
  return result;
}

}  // namespace property
