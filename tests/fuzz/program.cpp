#include "program.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <functional>

#include "fuzz/in_memory.hpp"
#include "fuzz/targets.hpp"
#include "lnorm/kernel/layer_norm.hpp"
#include "support/files.hpp"
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
    {"grad", "@", "--dy", "@", "--to", "json", "--dweight", "/dev/null"},
    {"grad", "@", "--dy", "@", "--axes", "0", "--weight", "2", "--dbias", "-", "--to", "json"},
    {"grad", "@", "--dy", "@", "--rms", "--eps-on", "std", "--dtype", "float16"},
    {"apply", "@", "--dtype", "float8_e4m3fn", "--saturate", "--output-scale", "100"},
    {"explain", "@"},
    {"explain", "@", "--axes", "0", "--row", "-1", "--weight", "@", "--json"},
    {"explain", "@:*", "--rms", "--eps", "0", "--eps-on", "std", "--residual", "@"},
    {"report", "@", "--softmax"},
    {"report", "@", "--axes", "0", "--eps", "0", "--weight", "@", "-o", "/dev/null"},
    {"compare", "@:a", "@:b", "--page", "/dev/null"},
    {"grad", "@", "--dy", "@", "--rows", "1:3", "--to", "json", "--dweight", "/dev/null"},
    {"explain", "@", "--rows", "-2:", "--axes", "0", "--json"},
    {"report", "@", "--rows", ":2", "-o", "/dev/null"},
};

// The others are drawn: option by option, and a value for each that takes one. % is a folder for files. Of
// options and values, too, new ones go to the end.
struct Option {
  Words words;   // its name, and what always goes with it
  Words values;  // none: takes none
  std::string_view
      where;  // the first letters of its commands: Apply, sTats, Compare, softMax, Show
};
constexpr std::uint8_t kDrawn = 128;  // from this first byte on
const Words kNames{"apply", "stats", "compare", "softmax", "show"};
constexpr std::string_view kLetters = "atcms";
const Words kTerms{"2", "[]",  "[1, -2, 0.5]", "[[],[]]", "@",         "@:a",
                   "0", "NaN", "1e308",        "-1e-320", "[1,2,3,4]", "-Infinity"};
const std::vector<Option> kOptions{
    {{"--axis"}, {"0", "1", "-1", "-2", "2", "5"}, "atcm"},
    {{"--axes"}, {"0", "1", "0,1", "-1,-2", "2,0", "2", "0,1,2", "1,1", "-5", ""}, "atcm"},
    {{"--normalized-shape"}, {"0", "3", "2,3", "3,4", "4", "0,3", "1", "-1"}, "atcm"},
    {{"--ddof"}, {"1", "0", "2", "5", "-1", "9223372036854775807"}, "at"},
    {{"--unbiased"}, {}, "at"},
    {{"--eps"}, {"0", "1e-5", "1", "1e300", "1e-320", "-1", "1e999"}, "at"},
    {{"--eps-on"}, {"std", "variance", "max"}, "at"},
    {{"--rms"}, {}, "at"},
    {{"--weight"}, kTerms, "at"},
    {{"--bias"}, kTerms, "at"},
    {{"--zero-centered-weight"}, {}, "at"},
    {{"--save-mean"}, {"%m.npy", "%m.json", "%m.txt", "%m.safetensors", "%m.jsonl", "-"}, "a"},
    {{"--save-rstd"}, {"%r.npy", "%r.json", "%r.txt", "%r.safetensors", "%r.jsonl", "%m.npy"}, "a"},
    {{"--no-keepdim"}, {}, "a"},
    {{"--dtype"},
     {"float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2"},
     "am"},
    {{"--to"}, {"npy", "json", "text", "safetensors", "jsonl"}, "am"},
    {{"-o"}, {"%y.npy", "%y.json", "%y.txt", "%y.safetensors", "%y.jsonl", "%y.npz"}, "am"},
    {{"--nan"}, {"null", "python"}, "am"},
    {{"--from"}, {"npy", "npz", "safetensors", "json", "jsonl"}, "atms"},
    {{"--as"}, {"bfloat16", "float8_e4m3fn", "float8_e5m2"}, "atcms"},
    {{"--precision"}, {"0", "1", "100"}, "ams"},
    {{"--edgeitems"}, {"0", "1", "1000000000000"}, "ams"},
    {{"--threshold"}, {"0", "5", "1000000000000"}, "ams"},
    {{"--linewidth"}, {"0", "20", "1000000000000"}, "ams"},
    {{"--sci-mode"}, {"on", "off", "auto"}, "ams"},
    {{"--softmax"}, {}, "t"},
    {{"--histogram"}, {}, "t"},
    {{"--all"}, {}, "t"},
    {{"--json"}, {}, "tc"},
    {{"--csv"}, {}, "t"},
    {{"--color"}, {"always", "never", "auto"}, "tcs"},
    {{"--rtol"}, {"0", "1e-3", "1e308", "-1"}, "c"},
    {{"--atol"}, {"0", "1e-3", "1e308", "1e-320"}, "c"},
    {{"--max-ulp"}, {"0", "3", "18446744073709551615"}, "c"},
    {{"--no-equal-nan"}, {}, "c"},
    {{"--max-diffs"}, {"0", "1", "1000000"}, "c"},
    {{"-q"}, {}, "c"},
    {{"--header"}, {}, "s"},
    {{"--name"}, {"y"}, "am"},
    {{"--digits"}, {"1", "3", "17", "0"}, "t"},
    {{"--worst"}, {"0", "1", "1000", "1001"}, "c"},
    {{"--by"}, {"ulp", "abs", "rel"}, "c"},
    {{"--common"}, {}, "c"},
    {{"--only"}, {"*", "x"}, "c"},
    {{"--skip"}, {"a", "[a-w]"}, "c"},
    {{"--rename"}, {"a=x", "*={1}{1}"}, "c"},
    {{"--tolerance"}, {"*=1,1", "x=0,0"}, "c"},
    {{"--as", "float32", "--from", "raw"}, {"--big-endian", "--softmax"}, "amts"},
    {{"--shape"}, {"1", "2,3", "0"}, "amts"},
    {{"--from"}, {"pb", "pt"}, "amts"},
    {{"--dtype", "float8_e4m3fn", "--saturate"}, {}, "am"},
    {{"--dtype", "float8_e5m2", "--output-scale"}, {"448", "-1e-3", "1e300", "0", "x"}, "am"},
    {{"--page"}, {"%p.html", "%p.npy"}, "c"},
    {{"--rows"}, {"0:1", "1:", ":2", "-1:", "1:2", ":", "2:1", "-2:-1", "3:9"}, "atcms"},
};
const Words kMembers{"@", "@:x", "@:a", "@:1", "@:", "@:*", "@:?"};

const std::string& one_of(const Words& words, std::uint8_t byte) {
  return words[byte % words.size()];
}

// The command line that bytes say.
Words drawn(std::uint8_t command, std::span<const std::uint8_t> bytes) {
  const auto next = [&] {
    if (bytes.empty()) return std::uint8_t{0};
    const std::uint8_t byte = bytes.front();
    bytes = bytes.subspan(1);
    return byte;
  };
  const std::size_t which = command % kNames.size();
  Words words{kNames[which]};
  const std::uint8_t members = next();
  words.push_back(one_of(kMembers, members % 16));
  if (words[0] == "compare") words.push_back(one_of(kMembers, members / 16));
  while (!bytes.empty()) {
    const Option& option = kOptions[next() % kOptions.size()];
    if (option.where.find(kLetters[which]) == option.where.npos) continue;
    words.insert(words.end(), option.words.begin(), option.words.end());
    if (!option.values.empty()) words.push_back(one_of(option.values, next()));
  }
  return words;
}

// Where drawn command lines write files.
class Folder {
 public:
  std::string path(const std::string& name) const { return directory_ / name; }

  // All that is there, file by file, and then no longer is.
  std::string take() {
    std::string all;
    for (const std::string& name : support::list_directory(directory_.path())) {
      all += name + ":" + support::read_file(directory_ / name);
      std::filesystem::remove(directory_ / name);
    }
    return all;
  }

 private:
  support::TempDir directory_;
};

// A file under the name "x", so that what .safetensors calls its tensor is what it is called from a pipe.
class NamedX {
 public:
  explicit NamedX(const std::string& target) {
    std::filesystem::remove(path());
    std::filesystem::create_symlink(target, path());
  }
  std::string path() const { return directory() / "x"; }

 private:
  static const support::TempDir& directory() {
    static const support::TempDir directory;
    return directory;
  }
};

Folder& folder() {
  static Folder folder;
  return folder;
}

// Rows of no elements may be very many, and so their means: files end early while this lives.
class FileSizeLimit {
 public:
  FileSizeLimit() {
    signal_ = std::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &before_);
    rlimit limit = before_;
    limit.rlim_cur = rlim_t{1} << 20;
    require(::setrlimit(RLIMIT_FSIZE, &limit) == 0, "setrlimit");
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, signal_);
  }

 private:
  rlimit before_{};
  void (*signal_)(int);
};

struct Run {
  int status;
  std::string out;
  std::string files;
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
    if (word.starts_with('%')) word = folder().path(word.substr(1));
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
    const FileSizeLimit limit;
    const StandardStream standard_in(STDIN_FILENO, in);
    const StandardStream standard_out(STDOUT_FILENO, out.get());
    const StandardStream standard_err(STDERR_FILENO, err.get());
    result.status = lnorm::app::run_program(static_cast<int>(argv.size()), argv.data());
  }
  result.files = folder().take();
  if (result.status == 2) {
    require(result.files.empty(), "what is refused leaves no files");
    const support::Outcome outcome{.status = 2, .out = "", .err = err.content()};
    const std::string fault = refusal_fault(outcome, {});
    require(fault.empty(), fault);
    return result;
  }
  require(result.status == 0 || result.status == 1, "an exit status is 0, 1 or 2");
  require(err.content().empty(), "what succeeds says nothing");
  result.out = out.content();
  replace_all(result.out, file, "standard input");  // reports name their input
  replace_all(result.out, "\n  ", " ");             // and fold lines by how long its name is
  return result;
}

// All but the reference, which does not give the same bits.
std::string any_kernel(std::string_view bytes) {
  Words names;
  for (const lnorm::Backend& backend : lnorm::backends()) {
    if (backend.name != std::string_view("reference")) names.emplace_back(backend.name);
  }
  return names[std::hash<std::string_view>()(bytes) % names.size()];
}

// Several tensors of one file have sections of their own.
std::vector<std::string_view> in_any_order(std::string_view text) {
  std::vector<std::string_view> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

}  // namespace

int fuzz_program(const std::uint8_t* data, std::size_t size) {
  if (size == 0 || size - 1 > kPipeBytes) return -1;
  std::span<const std::uint8_t> rest(data + 1, size - 1);
  Words words;
  if (data[0] < kDrawn) {
    words = kCommands[data[0] % kCommands.size()];
  } else {
    if (rest.empty()) return -1;
    const std::size_t count = std::min<std::size_t>(rest[0] % 32, rest.size() - 1);
    words = drawn(static_cast<std::uint8_t>(data[0] - kDrawn), rest.subspan(1, count));
    rest = rest.subspan(1 + count);
  }
  const std::string_view bytes(reinterpret_cast<const char*>(rest.data()), rest.size());
  const MemoryFile memory(bytes);
  const NamedX file(memory.path());
  const FullPipe nothing("");
  const bool has_kernels =
      words[0] == "apply" || words[0] == "stats" || words[0] == "grad" || words[0] == "explain";
  const Run expected = run(words, file.path(), file.path(), Words{"--threads", "1"}, nothing.get());
  Words options{"--threads", "2"};
  if (has_kernels) options.insert(options.end(), {"--kernel", any_kernel(bytes)});
  // Of a zip archive a pipe is refused, and several tensors it gives in an order of its own.
  const bool has_pattern = std::any_of(words.begin(), words.end(), [](const std::string& word) {
    return word == "@:*" || word == "@:?";
  });
  const bool seeks = bytes.starts_with("PK\x03\x04") || has_pattern;
  const Run actual =
      run(words, seeks ? file.path() : "-", file.path(), options, FullPipe(bytes).get());
  require(actual.status == expected.status, "the exit status from a pipe is that from a file");
  require(in_any_order(actual.out) == in_any_order(expected.out),
          "the result from a pipe, by another kernel, is the same");
  require(actual.files == expected.files, "the files from a pipe, by another kernel, are the same");
  return 0;
}
