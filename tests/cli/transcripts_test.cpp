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
