#include "lnorm/core/axes.hpp"

#include "support/catch.hpp"

using lnorm::Shape;

TEST_CASE("rows are numbered along the axes that are not normalized", "[core]") {
  CHECK(lnorm::kept_axes({2, 3, 4}, {1}) == lnorm::Axes{0, 2});
  CHECK(lnorm::row_shape({2, 3, 4}, {2}) == Shape{2, 3});
  CHECK(lnorm::row_shape({2, 3, 4}, {1}) == Shape{2, 4});
  CHECK(lnorm::row_shape({2, 3, 4}, {1}, true) == Shape{2, 1, 4});
  CHECK(lnorm::row_shape({2, 3, 4}, {0, 1, 2}).empty());
  CHECK(lnorm::row_shape({7}, {0}).empty());
  CHECK(lnorm::row_shape({}, {}).empty());
}
