
#include "support/commands.hpp"

// Fortran order and any axes, as a user meets them. (property/layouts_test.cpp has the shapes and sizes.)

namespace {

using namespace support;

// c.npy and f.npy hold the same 2 x 3 x 4 elements, as NumPy lays them out in either order.
struct TwoLayouts : Workplace {
  TwoLayouts() {
    std::vector<float> elements;
    for (int i = 0; i < 24; ++i) elements.push_back(static_cast<float>(i * i % 17) + 0.25F);
    write("c.npy", npy_of<float>({2, 3, 4}, elements));
    write("f.npy", fortran_npy_of<float>({2, 3, 4}, elements));
  }
};

}  // namespace

TEST_CASE("Fortran order is a layout, not another tensor", "[layouts]") {
  const TwoLayouts place;
  for (const Words& words :
       {Words{"apply"}, "apply --axis 1 --to json"_w, "apply --axes 0"_w,
        "apply --axes 0,2 --weight [[1,2,3,4],[5,6,7,8]]"_w, "softmax --axes 1"_w,
        "stats --json --axes 1,0"_w, Words{"show"}, "show --threshold 0 --edgeitems 1"_w}) {
    CAPTURE(words);
    Words c = words;
    Words f = words;
    c.insert(c.begin() + 1, "c.npy");
    f.insert(f.begin() + 1, "f.npy");
    std::string expected = place.output(c);
    std::string actual = place.output(f);
    std::string piped = place.output(words, pipe_of(place.read("f.npy")));
    if (words[0] == "stats") {  // which names its input
      actual.replace(actual.find("f.npy"), 5, "c.npy");
      piped.replace(piped.find("standard input"), 14, "c.npy");
    }
    CHECK(actual == expected);
    CHECK(piped == expected);
  }
  CHECK(place.output("compare f.npy c.npy --rtol 0 --atol 0 -q"_w).empty());
  CHECK(
      place.output("compare - f.npy --rtol 0 --atol 0 -q"_w, pipe_of(place.read("f.npy"))).empty());
}

TEST_CASE("weight in Fortran order is the same weight", "[layouts]") {
  const TwoLayouts place;
  place.write("w.npy",
              in_fortran_order(npy_of<float>({3, 4}, {1, 5, 9, 2, 6, 10, 3, 7, 11, 4, 8, 12})));
  CHECK(place.output("c.npy --axis 1 --weight w.npy"_w) ==
        place.output("c.npy --axis 1 --weight [[1,2,3,4],[5,6,7,8],[9,10,11,12]]"_w));
}

TEST_CASE("mean and rstd keep 1 in the place of the normalized axes", "[layouts]") {
  const TwoLayouts place;
  for (const char* const input : {"c.npy", "f.npy"}) {
    place.output(
        {input, "--axes", "1", "-o", "y.npy", "--save-mean", "m.json", "--save-rstd", "r.npy"});
    CHECK(parse_nested(place.read("m.json")).shape == std::vector<std::int64_t>{2, 1, 4});
    CHECK(contains(place.read("r.npy"), "'shape': (2, 1, 4)"));
    place.output({input, "--axes", "1", "-o", "y.npy", "--save-mean", "m.json", "--no-keepdim"});
    CHECK(parse_nested(place.read("m.json")).shape == std::vector<std::int64_t>{2, 4});
  }
}

TEST_CASE("weight has the shape of the normalized axes in the input's order", "[layouts]") {
  const TwoLayouts place;
  const std::string weight = "[[1,2,3,4],[5,6,7,8]]";
  CHECK(place.output({"c.npy", "--axes", "2,0", "--weight", weight}) ==
        place.output({"c.npy", "--axes", "0,2", "--weight", weight}));
  CHECK(place.fault("c.npy --axes 2,0 --weight [[1,2],[3,4],[5,6],[7,8]]"_w,
                    {" has shape (4, 2)", "(2, 4)"}) == "");
}

TEST_CASE("compare counts the rows that differ, along the axes that are left", "[layouts]") {
  const TwoLayouts place;
  std::string other = place.read("c.npy");
  other.back() = 'x';  // of element (1,2,3)
  place.write("other.npy", other);
  const Outcome differ = place.run("compare other.npy f.npy --axes 1"_w);
  CHECK(differ.status == 1);
  CHECK(contains(differ.out, "rows over axis 1: 1 / 8 differ, the first is 7 (1, 3)"));
  const Outcome same = place.run("compare c.npy f.npy --axis 1"_w);
  CHECK(same.status == 0);
  CHECK(contains(same.out, "rows over axes 1 and 2: 0 / 2 differ"));
  CHECK(place.fault("compare c.npy f.npy --axes 3"_w, {"c.npy: (2, 3, 4)", "axis 3"}) == "");
}
