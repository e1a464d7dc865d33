#include "lnorm/report/table.hpp"

#include <sstream>

#include "support/catch.hpp"
#include "support/written.hpp"

namespace {

using lnorm::Table;
using lnorm::TableLine;

std::vector<std::string> printed(const std::vector<lnorm::TableColumn>& columns,
                                 const std::vector<TableLine>& lines, int width) {
  std::istringstream text(support::written([&](lnorm::ByteSink& bytes) {
    lnorm::TextWriter writer({}, bytes);
    Table({"", "row"}, columns, lnorm::each_of(lines)).write(writer, width, "");
  }));
  std::vector<std::string> result;
  for (std::string line; std::getline(text, line);) result.push_back(line);
  return result;
}

const std::vector<lnorm::TableColumn> kColumns{
    {"input", "mean"}, {"input", "max"}, {"output", "mean"}};
const std::vector<TableLine> kLines{{"0", {"0.500", "-12.5", "1.5e-08"}},
                                    {"10", {"23", "nan", "0"}},
                                    {"...", {}},
                                    {"max", {"3", "", "1.00"}}};

}  // namespace

TEST_CASE("points stand under points, and what is no number at the right", "[report]") {
  CHECK(printed(kColumns, kLines, 80) == std::vector<std::string>{
                                             "      input           output",
                                             "row     mean    max      mean",
                                             "  0    0.500  -12.5   1.5e-08",
                                             " 10   23        nan   0",
                                             "...",
                                             "max    3              1.00",
                                         });
}

TEST_CASE("columns that do not fit stand below, groups together where one fits", "[report]") {
  const std::vector<std::string> two_blocks{
      "      input", "row     mean    max", "  0    0.500  -12.5", " 10   23        nan", "...",
      "max    3",    "      output",        "row      mean",       "  0   1.5e-08",       " 10   0",
      "...",         "max   1.00",
  };
  CHECK(printed(kColumns, kLines, 28) == two_blocks);
  CHECK(printed(kColumns, kLines, 19) == two_blocks);
  const std::vector<std::string> three = printed(kColumns, kLines, 18);
  CHECK(three.size() == 18);
  CHECK(three[6] == "      input");
  CHECK(three[7] == "row     max");
  CHECK(printed(kColumns, kLines, 1) == three);  // a column is there, however narrow the place
}

TEST_CASE("text is folded between words", "[report]") {
  lnorm::Style style;
  style.width = 10;
  CHECK(style.folded("one two") == "one two\n");
  CHECK(style.folded("one two th") == "one two th\n");
  CHECK(style.folded("one two thr") == "one two\n  thr\n");
  CHECK(style.folded("one two three four") == "one two\n  three\n  four\n");
  CHECK(style.folded("one longerthanten two") == "one\n  longerthanten\n  two\n");
  CHECK(style.folded("") == "\n");
}
