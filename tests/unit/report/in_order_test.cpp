#include "lnorm/report/in_order.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cstdint>
#include <string>
#include <string_view>

#include "lnorm/pipeline/executor.hpp"

namespace lnorm {

TEST_CASE("the text of items that several threads make comes in the order of the items") {
  for (const std::int64_t count : {0, 1, 300, 16'384, 40'000}) {
    std::string expected;
    std::string text;
    InOrder<std::int64_t> items(
        in_parallel(3),
        [](std::int64_t item, std::string& to) { to += std::to_string(item) + ' '; },
        [&](std::string_view part) { text += part; });
    for (std::int64_t item = 0; item < count; ++item) {
      items.add(item);
      expected += std::to_string(item) + ' ';
    }
    items.flush();
    CHECK(text == expected);
  }
}

}  // namespace lnorm
