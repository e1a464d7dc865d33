#include "lnorm/kernel/plain_moments.hpp"

#include "lnorm/kernel/kernel_table.hpp"
#include "lnorm/kernel/layer_norm.hpp"
#include "property/data.hpp"

namespace {

using lnorm::DType;
using property::Data;
using property::Random;

lnorm::RowsIn row_of(const Data& x) {
  return {x.bytes.data(), x.dtype, std::endian::native, 1,
          static_cast<std::int64_t>(x.numbers.size())};
}

}  // namespace

TEST_CASE("rows with plain sums are decided by all passes, and correctly rounded", "[kernel]") {
  constexpr int kRows = 19;  // more than at once, and not a multiple
  Random random(9);
  // The widest range that there may be: elements up to 2^20 times as large as others.
  const property::Recipe wide{"wide", [](Random& r, DType, int i, int) {
                                if (i % 7 == 3) return 0.0;
                                const double size =
                                    std::exp2(-19 * std::fabs(property::uniform(r)));
                                return std::copysign(size, property::uniform(r));
                              }};
  // One element is too small beside the others.
  const property::Recipe wider{"wider", [&](Random& r, DType d, int i, int n) {
                                 return i == n / 2 ? 0x1p-24 : wide.element(r, d, i, n);
                               }};
  for (const DType dtype : property::kFloats) {
    for (const int length : {1, 2, 15, 16, 17, 31, 32, 33, 100, 768, 1000, 1024, 1025, 3000}) {
      Data rows{dtype, {}, {}};
      std::vector<Data> each;
      for (int r = 0; r < kRows; ++r) {
        each.push_back(property::floats(dtype, r % 5 == 4 ? wider : wide, length, random));
        rows.bytes.insert(rows.bytes.end(), each.back().bytes.begin(), each.back().bytes.end());
      }
      const lnorm::RowsIn x{rows.bytes.data(), dtype, std::endian::native, kRows, length};
      const std::int64_t ddof = length > 1 ? 1 : 0;
      for (const lnorm::Backend& backend : lnorm::backends()) {
        if (backend.table == nullptr) continue;
        CAPTURE(backend.name, lnorm::name(dtype), length);
        std::vector<lnorm::Moments> found(kRows);
        bool decided[kRows] = {};
        backend.table->plain_moments(x, length - ddof, found.data(), decided);
        int count = 0;
        for (int r = 0; r < kRows; ++r) {
          if (!decided[r]) continue;
          ++count;
          const Data& row = each[static_cast<std::size_t>(r)];
          const oracle::Row exact(row.numbers, {}, false, {}, {.ddof = ddof});
          const lnorm::Moments& moments = found[static_cast<std::size_t>(r)];
          CHECK(moments.non_finite == 0);
          CHECK(moments.sum == exact.sum());
          CHECK(moments.mean == exact.mean());
          CHECK(moments.variance == exact.variance());
        }
        CHECK((count >= kRows * 3 / 4 || length < 3));  // two elements may be one number
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
        for (const lnorm::Backend& backend : lnorm::backends()) {
          if (backend.table == nullptr) continue;
          CAPTURE(backend.name, lnorm::name(dtype), recipe.name, length);
          const lnorm::Range found = backend.table->range(row_of(x));
          CHECK(found.non_finite == expected.non_finite);
          CHECK(std::memcmp(&found.min, &expected.min, 8) == 0);
          CHECK(std::memcmp(&found.max, &expected.max, 8) == 0);
          if (found.non_finite == 0) CHECK(found.least == expected.least);
        }
      }
    }
  }
}

TEST_CASE("a row whose least element is too small for plain sums is told from one that is not",
          "[kernel]") {
  CHECK(lnorm::is_plain(0x1p-20, 0.75));
  CHECK_FALSE(lnorm::is_plain(0x1.fffffep-21, 0.75));
  CHECK_FALSE(lnorm::is_plain(0x1p-20, 1));
  CHECK(lnorm::is_plain(HUGE_VAL, 0));
  CHECK_FALSE(lnorm::is_plain(HUGE_VAL, -HUGE_VAL));  // NaNs alone
  CHECK_FALSE(lnorm::may_be_plain(DType::float64));
  CHECK_FALSE(lnorm::may_be_plain(DType::int8));
}
