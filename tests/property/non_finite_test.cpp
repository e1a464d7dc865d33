// What layer normalisation makes of rows with a NaN or an infinity.

#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "lnorm/kernel/layer_norm.hpp"
#include "property/data.hpp"
#include "support/catch.hpp"

namespace {

using lnorm::DType;
using property::Data;
using property::floats;

constexpr std::array kFloats{DType::float16, DType::float32, DType::float64};
constexpr std::int64_t kRows = 3;
constexpr std::size_t kBadRow = 1;

lnorm::AffineTerm term(const Data& data) {
  const auto length = static_cast<std::int64_t>(data.numbers.size());
  return {lnorm::TensorInfo{"term", data.dtype, {length}}, data.bytes, false};
}

std::vector<double> row_of_finite(std::size_t length, double from) {
  std::vector<double> values;
  for (std::size_t i = 0; i < length; ++i) {
    values.push_back(from + 0.25 * static_cast<double>(i % 11));
  }
  return values;
}

}  // namespace

TEST_CASE("a NaN or an infinity in a row makes all of that row NaN and no other", "[kernel]") {
  const double bad =
      GENERATE(std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(),
               -std::numeric_limits<double>::infinity());
  const auto length = GENERATE(as<std::size_t>{}, 1, 3, 33, 1025);
  const bool rms = GENERATE(false, true);
  const bool weighted = GENERATE(false, true);
  const bool biased = GENERATE(false, true);
  lnorm::Formula formula;
  formula.rms = rms;
  lnorm::Affine affine;
  const Data weight = floats(DType::float32, row_of_finite(length, -1));
  const Data bias = floats(DType::float32, row_of_finite(length, 1000));
  if (weighted) affine.weight = term(weight);
  if (biased) affine.bias = term(bias);
  for (const std::size_t place : {std::size_t{0}, length / 2, length - 1}) {
    std::vector<double> values = row_of_finite(kRows * length, 1);
    values[kBadRow * length + place] = bad;
    for (const DType in : kFloats) {
      const Data x = floats(in, values);
      for (const DType out : kFloats) {
        for (const lnorm::Kernel& kernel : lnorm::kernels()) {
          CAPTURE(kernel.name, lnorm::name(in), lnorm::name(out), bad, length, place, rms, weighted,
                  biased);
          // Whether the statistics are wanted decides which way a row goes.
          for (const bool stats : {false, true}) {
            std::vector<std::byte> y(values.size() * lnorm::item_size(out));
            std::array<double, kRows> mean{};
            std::array<double, kRows> rstd{};
            kernel.layer_norm(
                {x.bytes.data(), in, std::endian::native, kRows, static_cast<std::int64_t>(length)},
                {y.data(), out}, affine, formula,
                stats ? lnorm::RowStats{mean.data(), rstd.data()} : lnorm::RowStats{});
            const std::vector<double> results = property::read_all(y, out);
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
