#include "support/catch.hpp"
#include "support/files.hpp"
#include "support/process.hpp"

// libzip takes longer to start than a small tensor takes to be read, so it is there for archives only.

namespace {

using namespace support;

// What the dynamic loader tells on standard error.
std::string loaded_by(const std::string& input) {
  const Outcome outcome =
      run(Command{.arguments = {input}, .environment = {{"LD_DEBUG", "files"}}});
  CHECK(outcome.status == 0);
  return outcome.err;
}

}  // namespace

TEST_CASE("libzip is loaded to read an archive, and for nothing else") {
  CHECK(loaded_by(data_file("sample.json")).find("libzip") == std::string::npos);
  CHECK(loaded_by(data_file("sample.json")).find("libcrypto") == std::string::npos);
  CHECK(loaded_by(data_file("corpus/good/stored.npz") + ":x").find("libzip") != std::string::npos);
}

TEST_CASE("a libzip that cannot be loaded is an error of archives") {
  const TempDir folder;
  for (const char* name : {"libzip.so.4", "libzip.so.5"}) write_file(folder / name, "no library");
  const auto with_broken = [&](const std::string& input) {
    return run(Command{.arguments = {input},
                       .environment = {{"LD_LIBRARY_PATH", folder.path().string()}}});
  };
  CHECK(with_broken(data_file("sample.json")).status == 0);
  CHECK(refusal_fault(with_broken(data_file("corpus/good/stored.npz") + ":x"),
                      {"libzip, which reads .npz, cannot be loaded", "libzip.so"}) == "");
}
