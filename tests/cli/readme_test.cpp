#include <filesystem>
#include <sstream>
#include <string>

#include "support/catch.hpp"
#include "support/files.hpp"
#include "support/process.hpp"

TEST_CASE("every example of README runs as printed", "[cli]") {
  const std::string readme = support::read_file(LNORM_SOURCE_DIR "/README.md");
  const std::size_t start = readme.find("```sh\n");
  REQUIRE(start != std::string::npos);
  std::istringstream block(readme.substr(start + 6, readme.find("```\n", start + 6) - start - 6));

  // A folder laid out like the project's, with this build's program where the examples expect one.
  const support::TempDir project;
  std::filesystem::create_directories(project / "build/release");
  std::filesystem::create_symlink(LNORM_BINARY, project / "build/release/lnorm");
  std::filesystem::create_directory_symlink(LNORM_DATA_DIR, project / "data");
  std::string setup;
  int examples = 0;
  for (std::string line; std::getline(block, line);) {
    if (line.empty() || line.starts_with('#')) continue;
    CAPTURE(line);
    // Lines that only prepare are kept for those that follow.
    const bool prepares = line.find("lnorm ") == std::string::npos;
    if (prepares) setup += line + "\n";
    if (prepares) continue;
    const support::Outcome outcome = support::run({.arguments = {"-ec", setup + line},
                                                   .directory = project.path().string(),
                                                   .program = "/bin/sh"});
    CHECK(outcome.status == 0);
    CHECK(outcome.err.empty());
    CHECK((line.find(" /tmp/") != std::string::npos || !outcome.out.empty()));
    ++examples;
  }
  CHECK(examples >= 10);
}
