#include <map>
#include <regex>
#include <set>
#include <string>

#include "support/catch.hpp"
#include "support/commands.hpp"
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

TEST_CASE("an option that a hint names is one of the command", "[hints]") {
  const std::regex option("(^|[^-a-zA-Z0-9])(--[a-z][-a-z0-9]*)");
  const std::regex word("[a-z]+");
  const auto found_in = [](const std::string& text, const std::regex& what, std::size_t group) {
    std::set<std::string> found;
    for (std::sregex_iterator at(text.begin(), text.end(), what), end; at != end; ++at) {
      found.insert(at->str(group));
    }
    return found;
  };
  std::map<std::string, std::set<std::string>> options;
  for (const std::string command : {"apply", "stats", "compare", "check", "mutants", "inputs",
                                    "softmax", "grad", "explain", "report", "show", "convert"}) {
    options[command] = found_in(output_of({command, "--help", "all"}), option, 2);
  }
  std::size_t hints = 0;
  for (const std::string& name : list_directory(LNORM_SOURCE_DIR "/tests/transcripts")) {
    const std::string text = read_file(LNORM_SOURCE_DIR "/tests/transcripts/" + name);
    for (const Example& example : examples_of(text)) {
      for (const std::string& line : lines_of(example.prints)) {
        if (!line.starts_with("hint: ") || line.find("lnorm --") != line.npos) continue;
        CAPTURE(example.command, line);
        std::set<std::string> known;
        for (const auto& of : {example.command, line}) {
          for (const std::string& command : found_in(of, word, 0)) {
            if (options.contains(command)) known.merge(std::set(options[command]));
          }
        }
        if (known.empty()) known = options["apply"];
        for (const std::string& one : found_in(line, option, 2)) CHECK(known.contains(one));
        ++hints;
      }
    }
  }
  CHECK(hints > 200);
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
