#include <cstring>

#include "support/catch.hpp"
#include "support/files.hpp"
#include "support/process.hpp"

// Fortran order and any axes, as a user meets them. (property/layouts_test.cpp has the shapes and sizes.)

namespace {

using namespace support;

// 2 x 3 x 4, 0 to 23 and a bit, in C order or as NumPy lays out an array in Fortran order.
std::string tensor(bool fortran) {
  std::vector<float> elements(24);
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 3; ++j) {
      for (int k = 0; k < 4; ++k) {
        const int c = (i * 3 + j) * 4 + k;
        const int at = fortran ? i + 2 * (j + 3 * k) : c;
        elements[static_cast<std::size_t>(at)] = static_cast<float>(c * c % 17) + 0.25F;
      }
    }
  }
  std::string file = npy("<f4", {2, 3, 4}, bytes_of(elements));
  if (fortran) file.replace(file.find("False"), 5, "True ");
  return file;
}

struct Workplace {
  Workplace() {
    write_file(directory / "c.npy", tensor(false));
    write_file(directory / "f.npy", tensor(true));
  }
  Command command(std::vector<std::string> arguments, Stream in = {}) const {
    return {.arguments = std::move(arguments),
            .in = std::move(in),
            .directory = directory.path().string()};
  }
  TempDir directory;
};

}  // namespace

TEST_CASE("Fortran order is a layout, not another tensor", "[layouts]") {
  const Workplace place;
  const auto out = [&](std::vector<std::string> arguments, Stream in = {}) {
    return output_of(place.command(std::move(arguments), std::move(in)));
  };
  const std::vector<std::vector<std::string>> commands{
      {"apply"},
      {"apply", "--axis", "1", "--to", "json"},
      {"apply", "--axes", "0"},
      {"apply", "--axes", "0,2", "--weight", "c.npy:no"},
      {"softmax", "--axes", "1"},
      {"stats", "--json", "--axes", "1,0"},
      {"show"},
      {"show", "--threshold", "0", "--edgeitems", "1"}};
  for (std::vector<std::string> words : commands) {
    if (words.back() == "c.npy:no") words.back() = "[[1,2,3,4],[5,6,7,8]]";
    CAPTURE(words);
    std::vector<std::string> c = words;
    std::vector<std::string> f = words;
    c.insert(c.begin() + 1, "c.npy");
    f.insert(f.begin() + 1, "f.npy");
    std::string expected = out(c);
    std::string actual = out(f);
    std::string piped = out(words, pipe_of(tensor(true)));
    if (words[0] == "stats") {  // which names its input
      actual.replace(actual.find("f.npy"), 5, "c.npy");
      piped.replace(piped.find("standard input"), 14, "c.npy");
    }
    CHECK(actual == expected);
    CHECK(piped == expected);
  }
  CHECK(out({"compare", "f.npy", "c.npy", "--rtol", "0", "--atol", "0", "-q"}).empty());
  CHECK(out({"compare", "-", "f.npy", "--rtol", "0", "--atol", "0", "-q"}, pipe_of(tensor(true)))
            .empty());
}

TEST_CASE("weight in Fortran order is the same weight", "[layouts]") {
  const Workplace place;
  std::string weight = npy("<f4", {3, 4}, bytes_of<float>({1, 5, 9, 2, 6, 10, 3, 7, 11, 4, 8, 12}));
  weight.replace(weight.find("False"), 5, "True ");
  write_file(place.directory / "w.npy", weight);
  CHECK(output_of(place.command({"c.npy", "--axis", "1", "--weight", "w.npy"})) ==
        output_of(place.command(
            {"c.npy", "--axis", "1", "--weight", "[[1,2,3,4],[5,6,7,8],[9,10,11,12]]"})));
}

TEST_CASE("mean and rstd keep 1 in the place of the normalized axes", "[layouts]") {
  const Workplace place;
  for (const char* const input : {"c.npy", "f.npy"}) {
    output_of(place.command(
        {input, "--axes", "1", "-o", "y.npy", "--save-mean", "m.json", "--save-rstd", "r.npy"}));
    CHECK(parse_nested(read_file(place.directory / "m.json")).shape ==
          std::vector<std::int64_t>{2, 1, 4});
    CHECK(read_file(place.directory / "r.npy").find("'shape': (2, 1, 4)") != std::string::npos);
    output_of(place.command(
        {input, "--axes", "1", "-o", "y.npy", "--save-mean", "m.json", "--no-keepdim"}));
    CHECK(parse_nested(read_file(place.directory / "m.json")).shape ==
          std::vector<std::int64_t>{2, 4});
  }
}

TEST_CASE("weight has the shape of the normalized axes in the input's order", "[layouts]") {
  const Workplace place;
  const std::string weight = "[[1,2,3,4],[5,6,7,8]]";
  CHECK(output_of(place.command({"c.npy", "--axes", "2,0", "--weight", weight})) ==
        output_of(place.command({"c.npy", "--axes", "0,2", "--weight", weight})));
  CHECK(refusal_fault(
            run(place.command({"c.npy", "--axes", "2,0", "--weight", "[[1,2],[3,4],[5,6],[7,8]]"})),
            {" has shape (4, 2)", "(2, 4)"}) == "");
}

TEST_CASE("compare counts the rows that differ, along the axes that are left", "[layouts]") {
  const Workplace place;
  std::string other = tensor(false);
  other.back() = 'x';  // of element (1,2,3)
  write_file(place.directory / "other.npy", other);
  const Outcome differ = run(place.command({"compare", "other.npy", "f.npy", "--axes", "1"}));
  CHECK(differ.status == 1);
  CHECK(differ.out.find("rows over axis 1: 1 / 8 differ, the first is (1, 3)") !=
        std::string::npos);
  const Outcome same = run(place.command({"compare", "c.npy", "f.npy", "--axis", "1"}));
  CHECK(same.status == 0);
  CHECK(same.out.find("rows over axes 1 and 2: 0 / 2 differ") != std::string::npos);
  CHECK(refusal_fault(run(place.command({"compare", "c.npy", "f.npy", "--axes", "3"})),
                      {"c.npy: (2, 3, 4)", "axis 3"}) == "");
}
