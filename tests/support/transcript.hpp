#pragma once

#include <filesystem>
#include <string>
#include <vector>

// Console sessions in Markdown. Every command of a ```console block ("$ ") is run, and prints what stands below it: standard
// output and error, as a terminal shows them. Where the last line is [2], that is its exit status; else it is 0.
//
// With LNORM_ACCEPT=1 in the environment what was printed is written into the file instead of compared.
namespace support {

struct Example {
  std::string command;
  std::string prints;
  int status = 0;
  bool begins_section = false;  // the first one below a heading "## "
};

std::vector<Example> examples_of(const std::string& markdown);

// One shell runs all commands of a file, in order, after those of setup. It stands in a folder laid out like the project's,
// with this build's program where README expects one. In place of /tmp/ stands a folder in there, by a name of the same
// length, since tables fit a width.
//
// A transcript's shell stands in a folder of its own, in which lnorm is found, and data/ is the project's. What comes
// before the first section makes its files; each section begins with these alone.
//
// A command that ends with status 2 is a refusal: it says one line, and perhaps a hint, and leaves no file behind.
enum class Kind { document, transcript };
std::size_t check_examples(const std::filesystem::path& file, Kind kind);

}  // namespace support
