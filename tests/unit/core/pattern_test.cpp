#include "lnorm/core/pattern.hpp"

#include <algorithm>

#include "support/catch.hpp"
#include "support/elements.hpp"

using lnorm::Captures;
using lnorm::match;
using lnorm::natural_less;

namespace {

std::string substituted(const std::string& text, const Captures& captures) {
  std::string result;
  const std::string error =
      support::error_of([&] { result = lnorm::substitute(text, "h.3.in", captures, "--weight"); });
  return error == "no error" ? result : error;
}

}  // namespace

TEST_CASE("a pattern matches whole names, and says what its stars stood for", "[pattern]") {
  CHECK(match("h.*.in", "h.12.in") == Captures{"12"});
  CHECK(match("h.*.in", "h..in") == Captures{""});
  CHECK_FALSE(match("h.*.in", "h.12.ins"));
  CHECK_FALSE(match("h.*.in", "xh.12.in"));
  CHECK(match("*", "") == Captures{""});
  CHECK(match("", "") == Captures{});
  CHECK_FALSE(match("", "a"));
  CHECK(match("*.*", "a.b.c") == Captures{"a", "b.c"});
  CHECK(match("**", "ab") == Captures{"", "ab"});
  CHECK(match("*a*b", "xaxbxb") == Captures{"x", "xbx"});
  CHECK(match("*/w", "a/b/w") == Captures{"a/b"});
  CHECK(match("h.?", "h.7"));
  CHECK_FALSE(match("h.?", "h.10"));
  CHECK(match("h.[0-3]*", "h.2.w") == Captures{".w"});
  CHECK_FALSE(match("h.[0-3]", "h.4"));
  CHECK(match("[!a-c]", "d"));
  CHECK_FALSE(match("[!a-c]", "b"));
  CHECK(match("[]x]", "]"));
  CHECK(match("[a-]", "-"));
  CHECK(match("a[", "a["));
  // Characters are those of UTF-8.
  CHECK(match("?", "\u00e9"));
  CHECK(match("[\u00e0-\u00ef]", "\u00e9"));
  CHECK(match("*\u00e9", "\u00e8\u00e9") == Captures{"\u00e8"});
}

TEST_CASE("a long pattern of stars takes no more than the product of the lengths", "[pattern]") {
  std::string pattern;
  for (int i = 0; i < 1000; ++i) pattern += "*a";
  CHECK_FALSE(match(pattern + "b", std::string(10'000, 'a')));
  CHECK(match(pattern + "*", std::string(10'000, 'a')));
}

TEST_CASE("placeholders stand for the name and what the stars stood for", "[pattern]") {
  CHECK(substituted("w.safetensors:h.{1}.w", {"3"}) == "w.safetensors:h.3.w");
  CHECK(substituted("{}/{2}{1}", {"a", "b"}) == "h.3.in/ba");
  CHECK(substituted("{x} {0} {01} {", {"a"}) == "{x} {0} {01} {");
  CHECK(substituted("{2}", {"a"}) ==
        "--weight: {2} stands for * number 2 of a pattern, found only 1");
  CHECK(substituted("{1}", {}) == "--weight: {1} stands for * number 1 of a pattern, found no *");
  CHECK(lnorm::has_placeholder("a{1}"));
  CHECK(lnorm::has_placeholder("{{}"));
  CHECK_FALSE(lnorm::has_placeholder("{\"x\": [1]}"));
}

TEST_CASE("natural order counts numbers as numbers", "[pattern]") {
  std::vector<std::string> names{"h.10.w",
                                 "h.2.w",
                                 "h.1.w",
                                 "h.1",
                                 "h.01.w",
                                 "h.a",
                                 "h.2.bias",
                                 "H.1",
                                 "h.100000000000000000000",
                                 "h.99999999999999999999",
                                 ""};
  std::sort(names.begin(), names.end(), natural_less);
  CHECK(names == std::vector<std::string>{"", "H.1", "h.1", "h.01.w", "h.1.w", "h.2.bias", "h.2.w",
                                          "h.10.w", "h.99999999999999999999",
                                          "h.100000000000000000000", "h.a"});
  for (const std::string& a : names) {
    for (const std::string& b : names) CHECK((natural_less(a, b) && natural_less(b, a)) == false);
    CHECK_FALSE(natural_less(a, a));
  }
}
