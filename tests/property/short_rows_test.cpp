// Short rows go through many at a time. Rows of all kinds beside each other come out as each of them does in integers.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "lnorm/kernel/layer_norm.hpp"
#include "property/data.hpp"
#include "support/catch.hpp"

namespace {

using lnorm::DType;
using property::Data;
using property::Random;

// Row by row: what most rows are, and what they are not.
std::vector<double> row_of_kind(std::uint64_t kind, std::int64_t length, Random& random) {
  const double infinity = std::numeric_limits<double>::infinity();
  std::vector<double> row;
  for (std::int64_t i = 0; i < length; ++i) row.push_back(property::normal(random));
  const auto change = [&](const auto& of) {
    for (double& x : row) x = of(x);
  };
  double& some = row[random() % row.size()];
  switch (kind) {
    case 0:
      change([](double) { return 0.75; });
      break;
    case 1:
      change([](double) { return 0.0; });
      break;
    case 2:
      change([](double x) { return 1000 + x; });
      break;
    case 3:
      change([](double x) { return 0x1p40 + x; });
      break;
    case 4:
      change([](double x) { return x * 1e-310; });
      break;
    case 5:
      change([](double x) { return x * 1e300; });
      break;
    case 6:
      change([](double x) { return x * 1e-40; });
      break;
    case 7:
      change([](double x) { return std::round(4 * x); });  // some are their mean
      break;
    case 8:
      some = infinity;
      break;
    case 9:
      some = std::nan("");
      break;
    case 10:
      some = 1e30;
      break;
    default:
      break;
  }
  return row;
}
constexpr std::uint64_t kKinds = 20;  // half of the rows are plain

Data rows_of_all_kinds(DType dtype, std::int64_t rows, std::int64_t length, Random& random) {
  if (!lnorm::is_floating(dtype)) {
    // Of integers some rows are constant.
    std::vector<lnorm::Int128> values;
    for (std::int64_t r = 0; r < rows; ++r) {
      const bool is_constant = random() % 5 == 0;
      for (std::int64_t i = 0; i < length; ++i) {
        values.push_back(is_constant ? 7 : static_cast<lnorm::Int128>(random()));
      }
    }
    return property::integers(dtype, values);
  }
  std::vector<double> values;
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::vector<double> row = row_of_kind(random() % kKinds, length, random);
    values.insert(values.end(), row.begin(), row.end());
  }
  return property::floats(dtype, values);
}

lnorm::AffineTerm term(std::int64_t length, Random& random) {
  const Data data = property::floats(random() % 2 == 0 ? DType::float64 : DType::bfloat16,
                                     property::kNormal, static_cast<int>(length), random);
  return {lnorm::TensorInfo{"term", data.dtype, {length}}, data.bytes, false};
}

}  // namespace

TEST_CASE("rows of all kinds beside each other are normalized right", "[kernel][long]") {
  const DType in = GENERATE(DType::float64, DType::float32, DType::bfloat16, DType::float16,
                            DType::int8, DType::uint32, DType::int64, DType::uint64);
  constexpr std::array kOuts{DType::float64, DType::float32, DType::bfloat16, DType::float16};
  Random random(static_cast<std::uint64_t>(in) + 5);
  const lnorm::Kernel& reference = lnorm::find_kernel("reference");
  for (const std::int64_t length : {2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 64, 127, 255, 256}) {
    for (const DType out : kOuts) {
      // More than go at once, or a few, so that the last vector of rows is not full.
      const std::int64_t rows = length <= 5 && out != DType::float16 ? 300 : 21;
      const Data x = rows_of_all_kinds(in, rows, length, random);
      lnorm::Formula formula;
      formula.eps = std::array{1e-5, 0.0, 1e-5, 1e-200}[random() % 4];
      formula.eps_on = random() % 4 == 0 ? lnorm::EpsOn::std : lnorm::EpsOn::variance;
      formula.rms = random() % 4 == 0;
      formula.ddof = static_cast<std::int64_t>(random() % 2);
      const auto some_term = [&] {
        return random() % 2 == 0 ? lnorm::AffineTerm() : term(length, random);
      };
      lnorm::AffineTerm weight = some_term();
      const lnorm::Affine affine(std::move(weight), some_term());
      const auto run = [&](const lnorm::Kernel& kernel) {
        std::vector<std::byte> y(static_cast<std::size_t>(rows * length) * lnorm::item_size(out));
        kernel.layer_norm({x.bytes.data(), in, std::endian::native, rows, length}, {y.data(), out},
                          affine, formula, {});
        return y;
      };
      const std::vector<std::byte> expected = run(reference);
      for (const lnorm::Kernel& kernel : lnorm::kernels()) {
        CAPTURE(kernel.name, lnorm::name(in), lnorm::name(out), rows, length, formula.eps,
                formula.rms, formula.ddof, affine.weight().empty(), affine.bias().empty());
        CHECK(run(kernel) == expected);
      }
    }
  }
}

TEST_CASE("64-bit integers at the ends of their range are decoded exactly", "[kernel]") {
  const DType in = GENERATE(DType::int64, DType::uint64);
  std::vector<lnorm::Int128> values;
  for (const int power : {0, 1, 31, 32, 33, 52, 53, 54, 62, 63, 64}) {
    for (const int step : {-2, -1, 0, 1, 2}) {
      const lnorm::Int128 value = (lnorm::Int128{1} << power) + step;
      values.push_back(value);
      values.push_back(-value);
    }
  }
  const Data x = property::integers(in, values);
  const auto length = static_cast<std::int64_t>(x.numbers.size());
  const auto run = [&](const lnorm::Kernel& kernel) {
    std::vector<std::byte> y(x.bytes.size());
    kernel.layer_norm({x.bytes.data(), in, std::endian::native, 1, length},
                      {y.data(), DType::float64}, {}, {}, {});
    return y;
  };
  const std::vector<std::byte> expected = run(lnorm::find_kernel("reference"));
  for (const lnorm::Kernel& kernel : lnorm::kernels()) {
    CAPTURE(kernel.name, lnorm::name(in));
    CHECK(run(kernel) == expected);
  }
}
