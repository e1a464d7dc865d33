#include "support/catch.hpp"
#include "support/files.hpp"
#include "support/transcript.hpp"

// Tables of commands and what they print, as text: tests/transcripts. One test each, so that they run side by side.

namespace {

using namespace support;

void check_transcript(const std::string& name) {
  const auto folder = std::filesystem::path(LNORM_SOURCE_DIR) / "tests/transcripts";
  CHECK(check_examples(folder / (name + ".md"), Kind::transcript) > 0);
}

}  // namespace

TEST_CASE("manners: hints lead on, and the program means what it says", "[transcript]") {
  check_transcript("manners");
}

TEST_CASE("options do what their formula says", "[transcript]") { check_transcript("options"); }

TEST_CASE("raw elements are what the command line says", "[transcript]") {
  check_transcript("raw");
}

TEST_CASE("refusals name the place, what was found and what was expected", "[transcript]") {
  check_transcript("refusals");
}

TEST_CASE("reports say what they mean", "[transcript]") { check_transcript("reports"); }

TEST_CASE("every transcript is a test", "[transcript]") {
  const std::string source = read_file(__FILE__);
  for (const std::string& name : list_directory(LNORM_SOURCE_DIR "/tests/transcripts")) {
    CAPTURE(name);
    CHECK(source.find("check_transcript(\"" + name.substr(0, name.find('.')) + "\")") !=
          std::string::npos);
  }
}

TEST_CASE("the hint for a table or a print is a command that makes JSON of it", "[hints]") {
  struct Text {
    std::string text;
    std::string json;  // empty: there is no such hint
  };
  const std::vector<Text> texts{
      {"id,h1,h2\n0,1.5,2\n1,3,4\n", "[[1.5,2.0],[3.0,4.0]]"},
      {"n,a,b\nr0,0.9,1\nr1,2,3\n", "[[0.9,1.0],[2.0,3.0]]"},
      {"     a    b\n0  1.5  2.0\n1  3.0  NaN\n", "[[1.5,2.0],[3.0,NaN]]"},
      {";a;b\nr1;0,9;1\nr2;2;3,5\n", "[[0.9,1.0],[2.0,3.5]]"},
      {"\xef\xbb\xbfh1,h2\r\n1,2\r\n3,4\r\n", "[[1.0,2.0],[3.0,4.0]]"},
      {"\xef\xbb\xbf"
       "1,2\n3,4\n",
       "[[1.0,2.0],[3.0,4.0]]"},
      {"array([], shape=(2, 0), dtype=float64)\n", ""},
      {"\"a\",\"b\"\n1,NA\n2,3\n", "[[1.0,NaN],[2.0,3.0]]"},
      {"\n1,2,3,\n4,5,6,\n", "[[1.0,2.0,3.0],[4.0,5.0,6.0]]"},
      {"loss\n1e-3\n2E5\n", "[[0.001],[200000.0]]"},
      {"r1,1,2\nr2,4,5\n", "[[1.0,2.0],[4.0,5.0]]"},
      {"nan,1\n2,3\n", "[[NaN,1.0],[2.0,3.0]]"},
      {",2,3\n4,5,6\n", "[[NaN,2.0,3.0],[4.0,5.0,6.0]]"},
      {"1,2,\n4,5,7\n", "[[1.0,2.0,NaN],[4.0,5.0,7.0]]"},
      {"# x\n1,2\n3,4\n", "[[1.0,2.0],[3.0,4.0]]"},
      {"a;b\n1.234,5;2\n3;4\n", ""},
      {"1,2,3\n4,5,abc\n", ""},
      {"[[ True False]\n [False  True]]\n", "[[1.0,0.0],[0.0,1.0]]"},
      {"[np.float64(1.0), np.float64(nan)]\n", "[1.0,NaN]"},
      {"4 rows of 6 elements, numbered\n", ""},
      {"\"x\"\n\"1\"\n", ""},
      {"Hello world\nfoo bar\n", ""},
      {"tensor([[ True, False]])\n", "[[1.0,0.0]]"},
      {"tensor(2.5000)\n", ""},
      {"[[nan, 1.0], [2.0, -inf]]\n", "[[NaN,1.0],[2.0,-Infinity]]"},
      {"[(1, 2), (None, True)]\n", "[[1.0,2.0],[NaN,1.0]]"}};
  for (const auto& [text, json] : texts) {
    CAPTURE(text);
    const Workplace at;
    at.write("x", text);
    const std::string err = at.run("x"_w).err;
    CAPTURE(err);
    const std::string becomes = " JSON by ";
    const std::size_t start = err.find(becomes);
    if (json.empty() || start == err.npos) {
      CHECK(json.empty());
      CHECK(start == err.npos);
      continue;
    }
    CHECK(at.shell(err.substr(start + becomes.size())).err == "");
    CHECK(at.output("convert x.json --to json"_w) == json + "\n");
  }
}
