#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

// Runs a program and waits for it: no shell, every stream as the test wants it.
namespace support {

struct Stream {
  enum class Kind { pipe, file, terminal, closed };
  Kind kind = Kind::pipe;
  std::string text;                  // of a pipe to the program: the bytes; of a file: the path
  std::optional<std::size_t> limit;  // of a pipe from the program: the reader leaves after that
  int columns = 0;                   // of a terminal: its width, if it knows that

  // Out of line: g++ 12 at -O3 takes the members of an inlined default for uninitialised.
  Stream();
  Stream(Kind kind, std::string text, std::optional<std::size_t> limit, int columns = 0);
};

inline Stream pipe_of(std::string bytes) { return {Stream::Kind::pipe, std::move(bytes), {}}; }
inline Stream pipe_until(std::size_t limit) { return {Stream::Kind::pipe, {}, limit}; }
inline Stream file(std::string path) { return {Stream::Kind::file, std::move(path), {}}; }
inline Stream terminal(int columns = 0) { return {Stream::Kind::terminal, {}, {}, columns}; }
inline Stream closed() { return {Stream::Kind::closed, {}, {}}; }

struct Command {
  std::vector<std::string> arguments;
  Stream in = {};   // by default an empty pipe
  Stream out = {};  // by default a pipe that is read to its end
  Stream err = {};  // the same
  std::string directory = ".";
  std::vector<std::pair<std::string, std::string>> environment = {};  // in addition to ours
  double seconds = 120;                                               // then it is killed
  std::string program = LNORM_BINARY;

  // Returns the command with its output elsewhere.
  Command to(Stream other) const;
};

struct Outcome {
  int status = -1;  // the exit status, or minus the signal
  std::string out;  // what came through the pipe or the terminal
  std::string err;  // the same
  double cpu_seconds = 0;
  long peak_kib = 0;  // no less than the test itself holds, from which it was forked
};

// Throws std::runtime_error if the program does not end in time.
Outcome run(const Command& command);
Outcome run(std::vector<std::string> arguments, Stream in = {});

// The output of a run that must succeed without a word; otherwise throws std::runtime_error.
std::string output_of(const Command& command);
std::string output_of(std::vector<std::string> arguments, Stream in = {});

// What is wrong with a run that should have been refused; empty if nothing is: exit status 2,
// nothing on standard output, and on standard error one line "lnorm: ...", then at most one line
// "hint: ...", valid UTF-8 without control characters, in which all the words occur.
std::string refusal_fault(const Outcome& outcome, const std::vector<std::string>& words);

}  // namespace support
