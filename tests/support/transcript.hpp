#pragma once

#include <filesystem>
#include <string>
#include <vector>

// Console sessions in Markdown. Each command of a ```console block ("$ ...") is run, and must print what stands below it:
// standard output and error, as a terminal shows them. A last line [2] is the exit status; without such a line it is 0.
//
// LNORM_ACCEPT=1 in the environment writes what the commands print into the file, and compares nothing.
namespace support {

// README's first command: the shell finds lnorm by it. docs/ and transcripts do without.
inline const std::string kFindLnorm = R"(export PATH="$PWD/build/release:$PATH")";

struct Example {
  std::string command;
  std::string prints;
  int status = 0;
  bool begins_section = false;  // the first one below a heading "## "
};

std::vector<Example> examples_of(const std::string& markdown);

// One shell runs all commands of a file in order, in a folder like the project's: build/release/lnorm is this build's
// program, data/ is the project's. /tmp/ becomes a folder in there whose name is as long, since tables fit a width.
//
// The commands of a transcript that stand before its first section make files. Each section begins in a folder of its own
// with a copy of these.
//
// Status 2 is a refusal: one line, perhaps a hint, and no file left behind.
//
// What a hint or a report says that one can run is run as well, as it stands.
enum class Kind { document, transcript };
std::size_t check_examples(const std::filesystem::path& file, Kind kind);

}  // namespace support
