#include "lnorm/core/nearest.hpp"

#include "support/catch.hpp"

using lnorm::nearest;
using lnorm::Nearness;
using Words = std::vector<std::string>;

TEST_CASE("the nearest word is begun, ended or misspelled", "[core]") {
  const Words options{"eps", "axis", "axes", "to", "normalized-shape", "min-sqnr", "unbiased"};
  const Words names{"h.10.weight", "h.2.weight", "rms.in", "rms.out"};
  struct Case {
    std::string word;
    const Words& candidates;
    std::string found;
  };
  for (const Case& c : std::vector<Case>{{"norm", options, "normalized-shape"},
                                         {"sqnr", options, "min-sqnr"},
                                         {"nr", options, ""},
                                         {"esp", options, "eps"},
                                         {"unbaised", options, "unbiased"},
                                         {"axs", options, "axis"},
                                         {"top", options, "to"},
                                         {"ot", options, ""},
                                         {"blue", options, ""},
                                         {"rms.im", names, "rms.in"},
                                         {"rms.outt", names, "rms.out"},
                                         {"weight", names, "h.2.weight"},
                                         {"h.2.weigth", names, "h.2.weight"},
                                         {"", names, ""},
                                         {std::string(101, 'h'), {std::string(102, 'h')}, ""}}) {
    CAPTURE(c.word);
    CHECK(nearest(c.word, c.candidates) == c.found);
  }
}

TEST_CASE("a short word is strictly near nothing", "[core]") {
  const Words options{"to", "name", "weight", "histogram"};
  for (const std::string word : {"top", "tol", "to", "nam", "mame", "wheigt"}) {
    CAPTURE(word);
    CHECK(nearest(word, options, Nearness::strict) == "");
  }
  CHECK(nearest("weigth", options, Nearness::strict) == "weight");
  CHECK(nearest("hist", options, Nearness::strict) == "histogram");
}

TEST_CASE("a word of a hundred letters is compared with its neighbors alone", "[core]") {
  const std::string word = std::string(99, 'a') + "b";
  CHECK(nearest(word, {std::string(106, 'a')}) == "");
  CHECK(nearest(word, {std::string(105, 'a')}) == std::string(105, 'a'));
}
