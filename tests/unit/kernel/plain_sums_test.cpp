#include "lnorm/kernel/plain_sums.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "lnorm/kernel/layer_norm.hpp"
#include "lnorm/kernel/passes.hpp"
#include "property/data.hpp"
#include "support/catch.hpp"
#include "support/oracle.hpp"

namespace {

using lnorm::DType;
using property::Data;
using property::Random;

lnorm::RowsIn row_of(const Data& x) {
  return {x.bytes.data(), x.dtype, std::endian::native, 1,
          static_cast<std::int64_t>(x.numbers.size())};
}

bool is(lnorm::DoubleDouble actual, const oracle::Integer& numerator, std::int64_t exponent) {
  const oracle::Number parts[] = {{actual.high}, {actual.low}};
  const oracle::Integers exact = oracle::integers(parts);
  const std::int64_t least = std::min(exact.exponent, exponent);
  const oracle::Integer found = exact.sum << static_cast<unsigned>(exact.exponent - least);
  const oracle::Integer expected = numerator << static_cast<unsigned>(exponent - least);
  return found == expected;
}

}  // namespace

TEST_CASE("plain sums are exact, and the same by all passes", "[kernel]") {
  Random random(9);
  for (const DType dtype : {DType::float16, DType::bfloat16, DType::float32}) {
    for (const int length : {1, 2, 15, 16, 17, 31, 32, 33, 100, 768, 1000, 1024}) {
      for (const double scale : {1.0, 3e-5, 1e4}) {
        // The widest range that there may be: elements up to 2^20 times as large as others.
        const property::Recipe wide{"wide", [&](Random& r, DType, int i, int) {
                                      if (i % 7 == 3) return 0.0;
                                      const double size =
                                          std::exp2(-19 * std::fabs(property::uniform(r)));
                                      return scale * std::copysign(size, property::uniform(r));
                                    }};
        const Data x = property::floats(dtype, wide, length, random);
        const lnorm::Range range = lnorm::range_one_by_one(row_of(x));
        CAPTURE(lnorm::name(dtype), length, scale, range.least, range.greatest);
        if (!lnorm::is_plain(dtype, range)) continue;
        const int exponent = lnorm::plain_exponent(range);
        CHECK(range.greatest < std::exp2(exponent));
        CHECK(range.greatest >= std::exp2(exponent - 1));
        const oracle::Integers exact = oracle::integers(x.numbers);
        oracle::Integer squares = 0;
        for (const oracle::Integer& value : exact.numerators) squares += value * value;
        for (const lnorm::Kernel& kernel : lnorm::kernels()) {
          if (kernel.passes == nullptr) continue;
          CAPTURE(kernel.name);
          const lnorm::Sums found = kernel.passes->plain_sums(row_of(x), exponent);
          // A chunk's sum has 53 bits, that of its squares 106: both are exact.
          CHECK(is(found.sum, exact.sum, exact.exponent));
          CHECK(is(found.squares, squares, 2 * exact.exponent));
        }
      }
    }
  }
}

TEST_CASE("all passes find the same range", "[kernel]") {
  Random random(10);
  for (const DType dtype :
       {DType::float16, DType::bfloat16, DType::float32, DType::float64, DType::int16}) {
    for (const property::Recipe& recipe : property::float_recipes()) {
      for (const int length : {1, 3, 31, 32, 33, 1100}) {
        const Data x = lnorm::is_floating(dtype) ? property::floats(dtype, recipe, length, random)
                                                 : property::integers(dtype, length, 10, random);
        const lnorm::Range expected = lnorm::range_one_by_one(row_of(x));
        for (const lnorm::Kernel& kernel : lnorm::kernels()) {
          if (kernel.passes == nullptr) continue;
          CAPTURE(kernel.name, lnorm::name(dtype), recipe.name, length);
          const lnorm::Range found = kernel.passes->range(row_of(x));
          CHECK(found.non_finite == expected.non_finite);
          CHECK(std::memcmp(&found.min, &expected.min, 8) == 0);
          CHECK(std::memcmp(&found.max, &expected.max, 8) == 0);
          if (lnorm::may_be_plain(dtype)) CHECK(found.least == expected.least);
          CHECK(found.greatest == expected.greatest);
        }
      }
    }
  }
}

TEST_CASE("a row whose least element is too small for plain sums is told from one that is not",
          "[kernel]") {
  const auto range_of = [](double least, double greatest) {
    lnorm::Range range;
    range.least = least;
    range.greatest = greatest;
    return range;
  };
  CHECK(lnorm::is_plain(DType::float32, range_of(0x1p-20, 0.75)));
  CHECK_FALSE(lnorm::is_plain(DType::float32, range_of(0x1.fffffep-21, 0.75)));
  CHECK_FALSE(lnorm::is_plain(DType::float32, range_of(0x1p-20, 1)));
  CHECK_FALSE(lnorm::is_plain(DType::float64, range_of(1, 1.5)));
  CHECK_FALSE(lnorm::is_plain(DType::int8, range_of(1, 2)));
}
