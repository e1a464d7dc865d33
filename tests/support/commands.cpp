#include "support/commands.hpp"

#include <algorithm>
#include <iterator>
#include <sstream>
#include <stdexcept>

namespace support {

Words operator""_w(const char* text, std::size_t size) {
  std::istringstream stream(std::string(text, size));
  return {std::istream_iterator<std::string>(stream), {}};
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::ptrdiff_t widest_line(const std::string& text) {
  std::ptrdiff_t widest = 0;
  for (const std::string& line : lines_of(text)) {
    const auto continues = [](char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; };
    widest =
        std::max(widest, std::ssize(line) - std::count_if(line.begin(), line.end(), continues));
  }
  return widest;
}

long peak_kib_of(const Command& command) {
  const Outcome outcome = run(command);
  if (outcome.status == 0 && outcome.err.empty()) return outcome.peak_kib;
  throw std::runtime_error(outcome.err);
}

void check_memory(long small_kib, long large_kib, [[maybe_unused]] long more_kib) {
  CAPTURE(small_kib, large_kib);
#ifndef LNORM_SANITIZED
  CHECK(large_kib < small_kib + more_kib);
#endif
}

std::string fault_of(const Command& command, const Words& expected) {
  return refusal_fault(run(command), expected);
}
std::string fault_of(Words words, const Words& expected, Stream in) {
  return fault_of(Command{.arguments = std::move(words), .in = std::move(in)}, expected);
}

Command Workplace::command(const Words& words, Stream in) const {
  return {.arguments = always_ + words, .in = std::move(in), .directory = path().string()};
}
Outcome Workplace::run(const Words& words, Stream in) const {
  return support::run(command(words, std::move(in)));
}
std::string Workplace::output(const Words& words, Stream in) const {
  return output_of(command(words, std::move(in)));
}
std::string Workplace::fault(const Words& words, const Words& expected, Stream in) const {
  return refusal_fault(run(words, std::move(in)), expected);
}

Command Workplace::script(const std::string& text) const {
  const std::string folder = std::filesystem::path(LNORM_BINARY).parent_path().string();
  return {.arguments = {"-c", text},
          .directory = path().string(),
          .environment = {{"PATH", folder + ":/usr/bin:/bin"}},
          .program = "/bin/sh"};
}
Outcome Workplace::shell(const std::string& text) const { return support::run(script(text)); }
std::string Workplace::shell_output(const std::string& text) const {
  return output_of(script(text));
}
std::string Workplace::shell_fault(const std::string& text, const Words& expected) const {
  return refusal_fault(shell(text), expected);
}

}  // namespace support
