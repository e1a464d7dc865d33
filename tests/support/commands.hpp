#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/catch.hpp"
#include "support/files.hpp"
#include "support/process.hpp"

// Tests of the command line are made of words, a folder to run in, and what to look for in what was printed.
namespace support {

using Words = std::vector<std::string>;

inline Words& operator+=(Words& words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}
inline Words operator+(Words words, const Words& more) { return std::move(words += more); }

// Splits a command line at blanks, as in "compare x.npy y.npy --json"_w.
Words operator""_w(const char* text, std::size_t size);

inline bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

std::vector<std::string> lines_of(const std::string& text);

// Returns how many columns the widest line takes, in characters.
std::ptrdiff_t widest_line(const std::string& text);

// Returns the memory that a run takes, which must succeed without a word.
long peak_kib_of(const Command& command);

// Checks that a run takes at most so much more memory than a small one. Sanitizers keep what is freed.
void check_memory(long small_kib, long large_kib, long more_kib);

// Returns what is wrong with a run that should have been refused, as refusal_fault does.
std::string fault_of(const Command& command, const Words& expected);
std::string fault_of(Words words, const Words& expected, Stream in = {});

// The program runs in this folder.
class Workplace : public TempDir {
 public:
  Workplace() = default;
  // Every command line begins with these words.
  explicit Workplace(Words always) : always_(std::move(always)) {}

  Command command(const Words& words, Stream in = {}) const;
  Outcome run(const Words& words, Stream in = {}) const;
  // The run must succeed without a word.
  std::string output(const Words& words, Stream in = {}) const;
  // The run must be refused, as refusal_fault has it.
  std::string fault(const Words& words, const Words& expected, Stream in = {}) const;

  // These run a script by sh, which finds lnorm on its PATH.
  Command script(const std::string& text) const;
  Outcome shell(const std::string& text) const;
  std::string shell_output(const std::string& text) const;
  std::string shell_fault(const std::string& text, const Words& expected) const;

 private:
  Words always_;
};

}  // namespace support
