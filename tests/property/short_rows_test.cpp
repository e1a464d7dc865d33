// Short rows go through many at a time. Rows of all kinds beside each other come out as each of them does in integers.

#include "lnorm/kernel/layer_norm.hpp"
#include "property/data.hpp"
#include "support/pace.hpp"

namespace {

using namespace property;
using lnorm::DType;

// Row by row: what most rows are, and what they are not.
std::vector<double> row_of_kind(std::uint64_t kind, std::int64_t length, Random& random) {
  std::vector<double> row;
  for (std::int64_t i = 0; i < length; ++i) row.push_back(normal(random));
  // A kind makes other rows of normal ones: it changes all elements or one.
  static constexpr std::array<double (*)(double), 8> kAll{
      [](double) { return 0.75; },
      [](double) { return 0.0; },
      [](double x) { return 1000 + x; },
      [](double x) { return 0x1p40 + x; },
      [](double x) { return x * 1e-310; },
      [](double x) { return x * 1e300; },
      [](double x) { return x * 1e-40; },
      [](double x) { return std::round(4 * x); },  // some are their mean
  };
  static constexpr std::array kOne{kInfinity, kNan, 1e30};
  double& some = row[random() % row.size()];
  if (kind < kAll.size()) {
    std::transform(row.begin(), row.end(), row.begin(), kAll[kind]);
  } else if (kind - kAll.size() < kOne.size()) {
    some = kOne[kind - kAll.size()];
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
    return integers(dtype, values);
  }
  std::vector<double> values;
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::vector<double> row = row_of_kind(random() % kKinds, length, random);
    values.insert(values.end(), row.begin(), row.end());
  }
  return floats(dtype, values);
}

lnorm::AffineTerm any_term(std::int64_t length, Random& random) {
  return term(floats(random() % 2 == 0 ? DType::float64 : DType::bfloat16, kNormal,
                     static_cast<int>(length), random));
}

}  // namespace

TEST_CASE("rows of all kinds beside each other are normalized right", "[kernel][long]") {
  const DType in = GENERATE(DType::float64, DType::float32, DType::bfloat16, DType::float16,
                            DType::int8, DType::uint32, DType::int64, DType::uint64);
  Random random(static_cast<std::uint64_t>(in) + 5);
  const lnorm::Backend& reference = lnorm::find_backend("reference");
  static int number = 0;
  for (const std::int64_t length : {2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 64, 127, 255, 256}) {
    for (const DType out : kFloats) {
      if (!support::takes(number++, 3)) continue;
      // More than go at once, or a few, so that the last vector of rows is not full.
      const std::int64_t rows = length <= 5 && out != DType::float16 ? 300 : 21;
      const Data x = rows_of_all_kinds(in, rows, length, random);
      lnorm::Formula formula;
      formula.eps = std::array{1e-5, 0.0, 1e-5, 1e-200}[random() % 4];
      formula.eps_on = any_place(random);
      formula.rms = random() % 4 == 0;
      formula.ddof = static_cast<std::int64_t>(random() % 2);
      const auto some_term = [&] {
        return random() % 2 == 0 ? lnorm::AffineTerm() : any_term(length, random);
      };
      lnorm::AffineTerm weight = some_term();
      const lnorm::Affine affine(std::move(weight), some_term());
      const auto run = [&](const lnorm::Backend& backend) {
        return normalized(backend, rows_in(x, rows), out, affine, formula);
      };
      const std::vector<std::byte> expected = run(reference);
      for (const lnorm::Backend& backend : lnorm::backends()) {
        CAPTURE(backend.name, lnorm::name(in), lnorm::name(out), rows, length, formula.eps,
                formula.rms, formula.ddof, affine.weight().empty(), affine.bias().empty());
        CHECK(run(backend) == expected);
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
  const Data x = integers(in, values);
  const std::vector<std::byte> expected =
      normalized(lnorm::find_backend("reference"), rows_in(x), DType::float64);
  for (const lnorm::Backend& backend : lnorm::backends()) {
    CAPTURE(backend.name, lnorm::name(in));
    CHECK(normalized(backend, rows_in(x), DType::float64) == expected);
  }
}
