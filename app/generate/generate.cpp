#include <string>
#include <string_view>

#include "generate/description.hpp"
#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/io/byte_sink.hpp"
#include "lnorm/io/open_tensor.hpp"

namespace lnorm::app {

namespace {

std::string names_in(const std::string& file) {
  std::string lines;
  for (const Selected& tensor : select_tensors(file, {}).tensors) {
    const std::string name = tensor.set->tensor_name(tensor.index);
    // One that cannot be typed as it is, in a line, is not for completion.
    if (!name.empty() && printable(name) == name) lines += name + "\n";
  }
  return lines;
}

std::string generated(const Program& described, std::span<const char* const> words) {
  const ProgramDescription program = describe(described);
  const std::string_view what = words.empty() ? "" : words[0];
  if (what == "man" && words.size() == 1) return manual_of(program);
  if (what == "man" && words.size() == 2) {
    for (const CommandDescription& command : program.commands) {
      if (command.name == words[1]) return manual_of(command);
    }
  }
  if (what == "bash" && words.size() == 1) return bash_completion(program);
  if (what == "zsh" && words.size() == 1) return zsh_completion(program);
  if (what == "fish" && words.size() == 1) return fish_completion(program);
  if (what == "names" && words.size() == 2) return names_in(words[1]);
  throw Error("--generate takes man, man COMMAND, bash, zsh, fish or names FILE");
}

}  // namespace

int generate(const Program& program, std::span<const char* const> words) {
  const std::string text = generated(program, words);
  ByteSink out("-");
  out.write(text);
  out.finish();
  out.commit();
  return 0;
}

}  // namespace lnorm::app
