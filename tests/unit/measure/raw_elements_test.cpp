#include "lnorm/measure/raw_elements.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <vector>

#include "lnorm/core/chunk.hpp"
#include "support/catch.hpp"

namespace {

using lnorm::DType;

// What is seen without decoding must be what is seen after it.
void check(const lnorm::RawElements& elements) {
  const auto chunk = std::make_unique<lnorm::Chunk>();
  lnorm::load(elements.data, elements.dtype, elements.byte_order, elements.count, *chunk);
  std::optional<std::int64_t> finite;
  std::optional<std::int64_t> finite_not_zero;
  bool nan = false;
  double greatest = lnorm::kNoneFinite;
  for (std::int64_t i = 0; i < elements.count; ++i) {
    const double value = chunk->high[i];
    CHECK(lnorm::element_at(elements, i).low == chunk->low[i]);
    nan = nan || std::isnan(value);
    if (!std::isfinite(value)) continue;
    if (!finite) finite = i;
    if (!finite_not_zero && value != 0) finite_not_zero = i;
    greatest = std::max(greatest, std::fabs(value));
  }
  CHECK(lnorm::first_finite(elements) == finite);
  CHECK(lnorm::first_finite_not_zero(elements) == finite_not_zero);
  CHECK(lnorm::has_nan(elements) == nan);
  CHECK(lnorm::greatest_finite(elements) == greatest);
}

}  // namespace

TEST_CASE("elements are seen as they lie in a file as they are when decoded", "[measure]") {
  const auto dtype = static_cast<DType>(GENERATE(range(0, 15)));
  const auto byte_order = GENERATE(std::endian::little, std::endian::big);
  CAPTURE(lnorm::name(dtype), static_cast<int>(byte_order));
  std::mt19937_64 random(7);
  const std::size_t item = lnorm::item_size(dtype);
  for (const std::int64_t count : {0, 1, 255, 256, 257, 700}) {
    // At both ends of the range of bits: zeros, and NaN or -1; alone, and with others behind them.
    for (const int filled : {0x00, 0x80, 0xff, 0x7f}) {
      for (const bool with_others : {false, true}) {
        std::vector<std::byte> bytes(static_cast<std::size_t>(count) * item,
                                     static_cast<std::byte>(filled));
        for (std::size_t i = bytes.size() / 2; with_others && i < bytes.size(); ++i) {
          bytes[i] = static_cast<std::byte>(random());
        }
        CAPTURE(count, filled, with_others);
        check({bytes.data(), count, dtype, byte_order});
      }
    }
  }
}
