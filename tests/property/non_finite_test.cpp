// What layer normalization makes of rows with a NaN or an infinity.

#include "lnorm/kernel/layer_norm.hpp"
#include "property/data.hpp"
#include "support/pace.hpp"

namespace {

using namespace property;
using lnorm::DType;

constexpr std::array kDTypes{DType::float16, DType::float32, DType::float64};
constexpr std::int64_t kRows = 3;
constexpr std::size_t kBadRow = 1;

std::vector<double> row_of_finite(std::size_t length, double from) {
  std::vector<double> values;
  for (std::size_t i = 0; i < length; ++i) {
    values.push_back(from + 0.25 * static_cast<double>(i % 11));
  }
  return values;
}

}  // namespace

TEST_CASE("a NaN or an infinity in a row makes all of that row NaN and no other",
          "[kernel][long]") {
  const double bad = GENERATE(as<double>{}, kNan, kInfinity, -kInfinity);
  const auto length = GENERATE(as<std::size_t>{}, 1, 3, 33, 1025);
  const bool rms = GENERATE(false, true);
  const bool weighted = GENERATE(false, true);
  const bool biased = GENERATE(false, true);
  static int number = 0;
  ++number;
  const Data weight = floats(DType::float32, row_of_finite(length, -1));
  const Data bias = floats(DType::float32, row_of_finite(length, 1000));
  const lnorm::Affine affine(weighted ? term(weight) : lnorm::AffineTerm(),
                             biased ? term(bias) : lnorm::AffineTerm());
  for (const std::size_t place : {std::size_t{0}, length / 2, length - 1}) {
    std::vector<double> values = row_of_finite(kRows * length, 1);
    values[kBadRow * length + place] = bad;
    for (const DType in : kDTypes) {
      const Data x = floats(in, values);
      for (const DType out : kDTypes) {
        if (!support::takes(number++, 4)) continue;
        for (const lnorm::Backend& backend : lnorm::backends()) {
          CAPTURE(backend.name, lnorm::name(in), lnorm::name(out), bad, length, place, rms,
                  weighted, biased);
          // Whether the statistics are wanted decides which way a row goes.
          for (const bool stats : {false, true}) {
            std::array<double, kRows> mean{};
            std::array<double, kRows> rstd{};
            const std::vector<double> results =
                read_all(normalized(backend, rows_in(x, kRows), out, affine, {.rms = rms},
                                    stats ? lnorm::RowNumbersOut{mean.data(), rstd.data()}
                                          : lnorm::RowNumbersOut{}),
                         out);
            for (std::size_t i = 0; i < results.size(); ++i) {
              const bool in_bad_row = i / length == kBadRow;
              if (std::isnan(results[i]) != in_bad_row || std::isinf(results[i])) {
                FAIL("element " << i << " is " << results[i]);
              }
            }
            for (std::size_t r = 0; stats && r < kRows; ++r) {
              CHECK(std::isnan(mean[r]) == (r == kBadRow));
              CHECK(std::isnan(rstd[r]) == (r == kBadRow));
            }
          }
        }
      }
    }
  }
}

TEST_CASE("a weight or bias that is not finite acts on the exact xhat by IEEE's rules",
          "[kernel]") {
  const DType dtype = GENERATE(from_range(kDTypes));
  // Rows of every sign; of two of them xhat of the second element is exactly 0.
  const std::vector<double> values{-1, -2, -3, 1, 2, 3, -1, 2, -3, -8, -9, -15, 5, 5, 5};
  const Data x = floats(dtype, values);
  for (const double special : {kInfinity, -kInfinity, kNan}) {
    const Data weight = floats(DType::float64, std::vector{special, special, 1.0});
    const Data bias = floats(DType::float64, std::vector{0.0, 1.0, special});
    for (const lnorm::Backend& backend : lnorm::backends()) {
      CAPTURE(backend.name, lnorm::name(dtype), special);
      const std::vector<double> results = read_all(
          normalized(backend, rows_in(x, 5), dtype, lnorm::Affine(term(weight), term(bias))),
          dtype);
      std::vector<double> expected;
      for (std::size_t i = 0; i < results.size(); ++i) {
        const double mean = (values[i / 3 * 3] + values[i / 3 * 3 + 1] + values[i / 3 * 3 + 2]) / 3;
        const double sign = values[i] > mean ? 1 : values[i] < mean ? -1 : 0;
        expected.push_back(i % 3 == 2 ? special : sign * special);
      }
      check_same(results, expected);
    }
  }
}
