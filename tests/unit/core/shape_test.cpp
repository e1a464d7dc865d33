#include "lnorm/core/shape.hpp"

#include <limits>

#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"
#include "support/catch.hpp"

using lnorm::Shape;

TEST_CASE("element counts are checked for overflow", "[core]") {
  CHECK(lnorm::element_count(Shape{}) == 1);
  CHECK(lnorm::element_count(Shape{2, 3, 4}) == 24);
  const auto most = std::numeric_limits<std::int64_t>::max();
  CHECK(lnorm::element_count(Shape{most}) == most);
  CHECK(lnorm::element_count(Shape{most, 1, 0, most}) == 0);
  CHECK_THROWS_AS(lnorm::element_count(Shape{most, 2}), lnorm::Error);
  CHECK_THROWS_AS(lnorm::element_count(Shape{1LL << 32, 1LL << 32}), lnorm::Error);
}

TEST_CASE("shapes, names and counts are written for people", "[core]") {
  CHECK(lnorm::to_string(Shape{}) == "()");
  CHECK(lnorm::to_string(Shape{768}) == "(768)");
  CHECK(lnorm::to_string(Shape{2, 3}) == "(2, 3)");
  CHECK(lnorm::printable("a\nb\tc\x1b[1m\x7f") == "a\\nb\\tc\\x1b[1m\\x7f");
  CHECK(lnorm::printable("\xc2\x9b"
                         "31m\xc2\x85\xc2\xa0") == "\\u009b31m\\u0085\xc2\xa0");
  CHECK(lnorm::printable("\xef\xbf\xbe\xef\xbf\xbd\xef\xb7\x90\xf4\x8f\xbf\xbf") ==
        "\\ufffe\xef\xbf\xbd\\ufdd0\\U0010ffff");
  CHECK(lnorm::printable("größe €𝄞.npy") == "größe €𝄞.npy");
  CHECK(lnorm::printable("\xff\xc3(\xe2\x82\xed\xa0\x80\xc0\x80\xf5") ==
        "\\xff\\xc3(\\xe2\\x82\\xed\\xa0\\x80\\xc0\\x80\\xf5");
  CHECK(lnorm::counted(1, "byte") == "1 byte");
  CHECK(lnorm::counted(0, "byte") == "0 bytes");
}
