#include "program.hpp"

#include <unistd.h>

#include <functional>
#include <string>
#include <vector>

#include "fuzz/in_memory.hpp"
#include "fuzz/targets.hpp"
#include "lnorm/kernel/layer_norm.hpp"
#include "support/process.hpp"

namespace {

using namespace fuzz;
using Words = std::vector<std::string>;

// @ stands for the input. New ones go to the end: the seeds count from the start.
const std::vector<Words> kCommands{
    {"apply", "@"},
    {"apply", "@", "--to", "json"},
    {"apply", "@", "--to", "text"},
    {"apply", "@", "--axis", "0", "--to", "json"},
    {"apply", "@", "--axes", "-2,-1", "--unbiased", "--eps", "0"},
    {"apply", "@", "--rms", "--weight", "2", "--zero-centered-weight"},
    {"apply", "@", "--bias", "[1, -2, 0.5]", "--eps-on", "std"},
    {"apply", "@", "--weight", "@"},
    {"apply", "@", "--dtype", "float16"},
    {"apply", "@", "--dtype", "bfloat16", "--to", "json", "--nan", "null"},
    {"apply", "@", "--dtype", "float64", "--save-mean", "/dev/null", "--no-keepdim"},
    {"apply", "@", "--normalized-shape", "2,3", "--save-rstd", "/dev/null"},
    {"apply", "@", "--from", "json"},
    {"apply", "@", "--from", "npy"},
    {"apply", "@:a"},
    {"stats", "@"},
    {"stats", "@", "--json", "--softmax", "--ddof", "1"},
    {"stats", "@", "--histogram", "--axis", "0"},
    {"stats", "@", "--csv", "--weight", "1e300"},
    {"compare", "@", "@"},
    {"compare", "@", "@:b", "--json", "--max-ulp", "3"},
    {"softmax", "@", "--to", "json"},
    {"softmax", "@", "--axis", "0", "--dtype", "float32"},
    {"show", "@"},
    {"show", "@", "--precision", "2", "--edgeitems", "1", "--threshold", "0", "--linewidth", "20"},
    {"apply", "@", "--axes", "0", "--save-mean", "/dev/null"},
    {"apply", "@", "--axes", "0,2", "--weight", "@", "--to", "json"},
    {"apply", "@", "--from", "jsonl", "--bias", "@"},
    {"apply", "@", "--to", "safetensors", "--name", "y"},
    {"apply", "@", "--as", "bfloat16"},
    {"apply", "@:x"},
    {"stats", "@", "--axes", "0", "--json"},
    {"softmax", "@", "--axes", "1", "--to", "json"},
    {"show", "@", "--from", "jsonl"},
    {"show", "@", "--as", "bfloat16", "--header"},
    {"compare", "@:x", "@:1", "--as", "bfloat16"},
};

struct Run {
  int status;
  std::string out;
};

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  for (std::size_t at = text.find(from); at != text.npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

// first: what stands for the first @; file: for the others.
Run run(Words words, const std::string& first, const std::string& file, const Words& options,
        int in) {
  bool is_first = true;
  for (std::string& word : words) {
    if (!word.starts_with('@')) continue;
    word.replace(0, 1, is_first ? first : file);
    is_first = false;
  }
  words.insert(words.end(), options.begin(), options.end());
  std::vector<const char*> argv{"lnorm"};
  for (const std::string& word : words) argv.push_back(word.c_str());
  const MemoryFile out;
  const MemoryFile err;
  Run result{};
  {
    const StandardStream standard_in(STDIN_FILENO, in);
    const StandardStream standard_out(STDOUT_FILENO, out.get());
    const StandardStream standard_err(STDERR_FILENO, err.get());
    result.status = lnorm::app::run_program(static_cast<int>(argv.size()), argv.data());
  }
  if (result.status == 2) {
    const support::Outcome outcome{.status = 2, .out = "", .err = err.content()};
    const std::string fault = refusal_fault(outcome, {});
    require(fault.empty(), fault);
    return result;
  }
  require(result.status == 0 || result.status == 1, "an exit status is 0, 1 or 2");
  require(err.content().empty(), "what succeeds says nothing");
  result.out = out.content();
  replace_all(result.out, file, "standard input");  // reports name their input
  return result;
}

// All but the reference, which does not give the same bits.
std::string any_kernel(std::string_view bytes) {
  Words names;
  for (const lnorm::Kernel& kernel : lnorm::kernels()) {
    if (kernel.name != std::string_view("reference")) names.emplace_back(kernel.name);
  }
  return names[std::hash<std::string_view>()(bytes) % names.size()];
}

}  // namespace

int fuzz_program(const std::uint8_t* data, std::size_t size) {
  if (size == 0 || size - 1 > kPipeBytes) return -1;
  const Words& words = kCommands[data[0] % kCommands.size()];
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const MemoryFile file(bytes);
  const FullPipe nothing("");
  const bool has_threads = words[0] != "show";
  const bool has_kernels = words[0] == "apply" || words[0] == "stats";
  const Run expected = run(words, file.path(), file.path(),
                           has_threads ? Words{"--threads", "1"} : Words{}, nothing.get());
  Words options = has_threads ? Words{"--threads", "2"} : Words{};
  if (has_kernels) options.insert(options.end(), {"--kernel", any_kernel(bytes)});
  // Of a zip archive a pipe is refused.
  const bool seeks = bytes.starts_with("PK\x03\x04");
  const Run actual =
      run(words, seeks ? file.path() : "-", file.path(), options, FullPipe(bytes).get());
  require(actual.status == expected.status, "the exit status from a pipe is that from a file");
  require(actual.out == expected.out, "the result from a pipe, by another kernel, is the same");
  return 0;
}
