#include "lnorm/core/chunk.hpp"
#include "lnorm/core/dtype.hpp"
#include "lnorm/core/small_float.hpp"
#include "lnorm/io/npy/npy.hpp"
#include "support/catch.hpp"
#include "support/elements.hpp"
#include "support/files.hpp"

using lnorm::DType;
using lnorm::Float8E4M3;
using lnorm::Float8E5M2;
using lnorm::to_double;

namespace {

constexpr auto to_float8_e4m3 = lnorm::rounded_to<Float8E4M3>;
constexpr auto to_float8_e5m2 = lnorm::rounded_to<Float8E5M2>;

// The value of a number from its fields, as OFP8 defines it.
double defined_float8(unsigned bits, int mantissa_bits, int bias) {
  const double sign = (bits & 0x80) != 0 ? -1 : 1;
  const int exponent = static_cast<int>((bits & 0x7f) >> mantissa_bits);
  const double fraction = std::ldexp(bits & ((1U << mantissa_bits) - 1), -mantissa_bits);
  return exponent == 0 ? sign * std::ldexp(fraction, 1 - bias)
                       : sign * std::ldexp(1 + fraction, exponent - bias);
}

template <class Float8>
struct Format {
  int mantissa_bits;
  int bias;
  unsigned greatest;  // the bits of the greatest number
  Float8 (*round)(double) noexcept;
};
const Format<Float8E4M3> kE4M3{3, 7, 0x7e, to_float8_e4m3};
const Format<Float8E5M2> kE5M2{2, 15, 0x7b, to_float8_e5m2};

template <class Float8>
void check_values(const Format<Float8>& format) {
  for (unsigned bits = 0; bits < 256; ++bits) {
    CAPTURE(bits);
    const double value = to_double(Float8{static_cast<std::uint8_t>(bits)});
    if ((bits & 0x7f) > format.greatest) {
      CHECK(!std::isfinite(value));
      continue;
    }
    CHECK(value == defined_float8(bits, format.mantissa_bits, format.bias));
    CHECK(std::signbit(value) == (bits >= 0x80));
    CHECK(format.round(value).bits == bits);
  }
}

// Up to half a step beyond the greatest number.
template <class Float8>
void check_rounding(const Format<Float8>& format) {
  for (unsigned bits = 0; bits <= format.greatest; ++bits) {
    const double low = defined_float8(bits, format.mantissa_bits, format.bias);
    const double high = defined_float8(bits + 1, format.mantissa_bits, format.bias);
    const double middle = (low + high) / 2;
    const unsigned even = bits % 2 == 0 ? bits : bits + 1;
    CAPTURE(low, high);
    CHECK(format.round(middle).bits == even);
    CHECK(format.round(-middle).bits == (even | 0x80));
    CHECK(format.round(std::nextafter(middle, low)).bits == bits);
    CHECK(format.round(std::nextafter(middle, high)).bits == bits + 1);
    CHECK(format.round(std::nextafter(-middle, -high)).bits == ((bits + 1) | 0x80));
  }
  const unsigned beyond = format.greatest + 1;
  for (const double value :
       {1e5, 1e30, std::numeric_limits<double>::max(), std::numeric_limits<double>::infinity()}) {
    CHECK(format.round(value).bits == beyond);
    CHECK(format.round(-value).bits == (beyond | 0x80));
  }
  CHECK(format.round(std::numeric_limits<double>::denorm_min()).bits == 0);
  CHECK(format.round(-1e-300).bits == 0x80);
}

template <class T>
std::vector<T> read(const std::string& name) {
  const auto source =
      lnorm::open_npy(lnorm::open_file(support::data_file("float8/" + name + ".npy")));
  return support::elements_of<T>(lnorm::read_all(*source));
}

// data/float8, which make.py beside it describes.
template <class Float8>
void check_torch(const Format<Float8>& format, const std::string& name) {
  const auto values = read<float>(name + "_values");
  REQUIRE(values.size() == 256);
  for (unsigned bits = 0; bits < 256; ++bits) {
    CAPTURE(bits);
    const double value = to_double(Float8{static_cast<std::uint8_t>(bits)});
    const double expected{values[bits]};
    CHECK(((std::isnan(value) && std::isnan(expected)) || value == expected));
  }
  const auto floats = read<float>("floats");
  const auto codes = read<std::uint8_t>(name + "_codes");
  REQUIRE(codes.size() == floats.size());
  for (std::size_t i = 0; i < floats.size(); ++i) {
    if (format.round(double{floats[i]}).bits != codes[i]) FAIL(floats[i]);
  }
}

}  // namespace

TEST_CASE("every float8 has its value and comes back from it", "[core]") {
  check_values(kE4M3);
  check_values(kE5M2);
  CHECK(std::isnan(to_double(Float8E4M3{0x7f})));
  CHECK(std::isnan(to_double(Float8E4M3{0xff})));
  CHECK(to_double(Float8E5M2{0x7c}) == std::numeric_limits<double>::infinity());
  CHECK(to_double(Float8E5M2{0xfc}) == -std::numeric_limits<double>::infinity());
  for (const unsigned bits : {0x7dU, 0x7eU, 0x7fU, 0xfdU, 0xfeU, 0xffU}) {
    CHECK(std::isnan(to_double(Float8E5M2{static_cast<std::uint8_t>(bits)})));
  }
}

TEST_CASE("float8 rounds to nearest, ties to even, in one step", "[core]") {
  check_rounding(kE4M3);
  check_rounding(kE5M2);
  for (const double nan : {std::nan(""), -std::nan("")}) {
    CHECK(to_float8_e4m3(nan).bits == 0x7f);
    CHECK(to_float8_e5m2(nan).bits == 0x7e);
  }
}

TEST_CASE("float8 is what PyTorch takes it for, and rounds to", "[core]") {
  check_torch(kE4M3, "float8_e4m3fn");
  check_torch(kE5M2, "float8_e5m2");
}

TEST_CASE("what saturates is stored as the greatest number, but for NaN", "[core]") {
  const double infinity = std::numeric_limits<double>::infinity();
  const std::vector<double> numbers{464.1, -1e9, infinity, -infinity, std::nan(""), 464, 0.5};
  const auto stored = [&](DType dtype, bool saturates) {
    std::vector<std::byte> bytes(numbers.size());
    lnorm::store(numbers.data(), std::ssize(numbers), dtype, bytes.data(), saturates);
    std::vector<unsigned> codes;
    for (const std::byte byte : bytes) codes.push_back(static_cast<unsigned>(byte));
    return codes;
  };
  using Codes = std::vector<unsigned>;
  CHECK(stored(DType::float8_e4m3fn, false) == Codes{0x7f, 0xff, 0x7f, 0xff, 0x7f, 0x7e, 0x30});
  CHECK(stored(DType::float8_e4m3fn, true) == Codes{0x7e, 0xfe, 0x7e, 0xfe, 0x7f, 0x7e, 0x30});
  CHECK(stored(DType::float8_e5m2, false) == Codes{0x5f, 0xfc, 0x7c, 0xfc, 0x7e, 0x5f, 0x38});
  CHECK(stored(DType::float8_e5m2, true) == Codes{0x5f, 0xfb, 0x7b, 0xfb, 0x7e, 0x5f, 0x38});
}
