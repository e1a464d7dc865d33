#include "lnorm/pipeline/pairs.hpp"

#include <chrono>

#include "lnorm/core/text.hpp"
#include "support/catch.hpp"
#include "support/elements.hpp"

namespace {

using lnorm::PairingRules;
using lnorm::Pairs;
using Names = std::vector<std::string>;
using support::error_of;

Pairs pairs_of(const Names& actual, const Names& expected, const PairingRules& rules = {}) {
  return lnorm::pair_by_name({"a.npz", actual}, {"b.npz", expected}, rules);
}

Names names_of(const Pairs& pairs) {
  Names names;
  for (const lnorm::Pair& pair : pairs.pairs) names.push_back(pair.name);
  return names;
}

}  // namespace

TEST_CASE("tensors are paired by name in the order of the expected ones", "[pairs]") {
  const Pairs pairs = pairs_of({"c", "x", "a", "b"}, {"b", "a", "y", "c"});
  CHECK(names_of(pairs) == Names{"b", "a", "c"});
  CHECK(pairs.pairs[0].actual == 3);
  CHECK(pairs.pairs[0].expected == 0);
  CHECK(pairs.pairs[2].actual == 0);
  CHECK(pairs.pairs[2].expected == 3);
  CHECK(pairs.actual_only == Names{"x"});
  CHECK(pairs.expected_only == Names{"y"});
  CHECK(pairs_of({}, {}).pairs.empty());
}

TEST_CASE("names are changed on both sides before they are looked at", "[pairs]") {
  PairingRules rules{.renamings = {{"model.*.w", "{1}"}, {"*", "{}"}}};
  // The first that matches gives the name.
  const Pairs pairs = pairs_of({"h.0", "model.h.1.w"}, {"model.h.0.w", "h.1"}, rules);
  CHECK(names_of(pairs) == Names{"h.0", "h.1"});
  CHECK(pairs.actual_only.empty());
  CHECK(pairs.expected_only.empty());

  // What the other options say is said of the new names.
  rules.only = {"h.*"};
  rules.skip = {"*.1"};
  CHECK(names_of(pairs_of({"h.0", "model.h.1.w"}, {"model.h.0.w", "h.1"}, rules)) == Names{"h.0"});
}

TEST_CASE("two tensors of a side that get one name are an error that names both", "[pairs]") {
  const PairingRules rules{.renamings = {{"m.*", "{1}"}}};
  CHECK(error_of([&] {
          pairs_of({"w"}, {"m.w", "w"}, rules);
        }) == "EXPECTED b.npz: both 'm.w' and 'w' get the name 'w', expected one");
  CHECK(error_of([&] {
          pairs_of({"m.w", "w"}, {"w"}, rules);
        }) == "ACTUAL a.npz: both 'm.w' and 'w' get the name 'w', expected one");
  const PairingRules second{.renamings = {{"m.*", "{2}"}}};
  CHECK(error_of([&] { pairs_of({"m.w"}, {"w"}, second); }) ==
        "renaming m.*={2}: {2} stands for * number 2 of a pattern, found only 1");
}

TEST_CASE("several patterns of an option are one or the other", "[pairs]") {
  const Names names{"h.0.in", "h.0.out", "h.1.in", "h.1.out", "wte"};
  const PairingRules rules{.only = {"*.in", "*.out"}, .skip = {"h.1.in", "wte"}};
  CHECK(names_of(pairs_of(names, names, rules)) == Names{"h.0.in", "h.0.out", "h.1.out"});
  // Names on one side alone, too.
  const Pairs pairs = pairs_of(names, {"h.0.in", "h.9.out", "h.9.x"}, rules);
  CHECK(names_of(pairs) == Names{"h.0.in"});
  CHECK(pairs.actual_only == Names{"h.0.out", "h.1.out"});
  CHECK(pairs.expected_only == Names{"h.9.out"});
}

TEST_CASE("of several tolerances the first that matches counts", "[pairs]") {
  const Names names{"attn.0", "attn.1", "mlp.0"};
  const PairingRules rules{.tolerances = {{"attn.1", 1, 2}, {"attn*", 3, 4}}};
  const Pairs pairs = pairs_of(names, names, rules);
  CHECK(pairs.pairs[0].tolerance == std::size_t{1});
  CHECK(pairs.pairs[1].tolerance == std::size_t{0});
  CHECK(!pairs.pairs[2].tolerance);
}

TEST_CASE("a pattern that matches no tensor is an error that lists some", "[pairs]") {
  const Names names{"h.0", "h.1"};
  const auto with = [&](const PairingRules& rules) {
    return error_of([&] { pairs_of(names, {"h.2"}, rules); });
  };
  const std::string rest =
      ": 'x*' matches no tensor, neither of a.npz (h.0, h.1) nor of b.npz (h.2)";
  CHECK(with({{{"x*", "y"}}, {}, {}, {}}) == "renaming" + rest);
  CHECK(with({{}, {"h.0", "x*"}, {}, {}}) == "only" + rest);
  CHECK(with({{}, {}, {"x*"}, {}}) == "skip" + rest);
  CHECK(with({{}, {}, {}, {{"x*", 0, 0}}}) == "tolerance" + rest);
  // A name on one side is enough, also of a tensor that is not compared, or that another pattern takes first.
  CHECK(with({{}, {}, {"h.2"}, {{"h.2", 0, 0}, {"h.?", 0, 0}}}) == "no error");
}

TEST_CASE("ten thousand names are paired at once", "[pairs]") {
  Names names;
  for (int i = 0; i < 10'000; ++i) names.push_back(lnorm::concat("model.layers.", i, ".weight"));
  const PairingRules rules{.renamings = {{"model.*.nothing", "x"}, {"model.*", "{1}"}},
                           .only = {"*layers*weight*"},
                           .skip = {"layers.99*"},
                           .tolerances = {{"*1*2*3*", 0, 0}}};
  Names others = names;
  others.emplace_back("model.one.nothing");
  const auto begin = std::chrono::steady_clock::now();
  CHECK(pairs_of(names, others, rules).pairs.size() == 10'000 - 111);
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(20));
}
