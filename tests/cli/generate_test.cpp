#include <regex>
#include <set>
#include <sstream>

#include "support/commands.hpp"

// Manual and completions, which the program writes from its own options, in the programs that read them.

namespace {

using namespace support;
using Set = std::set<std::string>;

// As help lists them.
Words commands() {
  Words result;
  bool listed = false;
  for (const std::string& line : lines_of(output_of({"--help"}))) {
    if (listed && !line.starts_with("  ")) break;
    if (listed && line[2] != ' ') result.push_back(line.substr(2, line.find(' ', 2) - 2));
    if (std::regex_match(line, std::regex("(Subcommands|SUBCOMMANDS|Commands):"))) listed = true;
  }
  return result;
}

Set set_of(const Words& words) { return {words.begin(), words.end()}; }

Set options_in_help(const std::string& command) {
  Set result;
  for (const std::string& line : lines_of(output_of({command, "--help", "all"}))) {
    if (!line.starts_with("  -")) continue;
    std::string names;
    std::istringstream(line) >> names;
    std::istringstream split(names);
    for (std::string name; std::getline(split, name, ',');) result.insert(name);
  }
  return result;
}

// A folder with a file of two tensors, the scripts, and nothing else that begins with their letters.
struct ShellFolder : Workplace {
  ShellFolder() {
    std::filesystem::copy(data_file("corpus/good/stored.npz"), *this / "model.npz");
    for (const char* shell : {"bash", "zsh", "fish"}) {
      const std::string name = shell == std::string("zsh") ? "_lnorm" : shell;
      write(name, output_of({"--generate", shell}));
    }
  }

  std::string output(const Words& arguments) const {
    return output_of(Command{.arguments = arguments,
                             .directory = path().string(),
                             .environment = {{"HOME", path().string()}},
                             .program = "/usr/bin/env"});
  }
};

const std::string kLnorm = LNORM_BINARY;

// What the shells offer for the last word of a line, whose first word the program's path replaces.

constexpr const char* kBash = R"(
set -u
source ./bash
COMP_WORDBREAKS=$' \t\n"\'><=;|&(:'
COMP_LINE=$1
COMP_POINT=${#COMP_LINE}
cut=${COMP_LINE//:/ : }
read -ra COMP_WORDS <<<"${cut//=/ = }"
[[ $COMP_LINE != *' ' ]] || COMP_WORDS+=("")
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_lnorm
((${#COMPREPLY[@]} == 0)) || printf '%s\n' "${COMPREPLY[@]}"
)";

Set in_bash(const ShellFolder& folder, const std::string& line) {
  return set_of(lines_of(folder.output({"bash", "-c", kBash, "bash", kLnorm + line})));
}

std::string last_word(const std::string& line) { return line.substr(line.find_last_of(' ') + 1); }

// What begins so: fish 4 also offers what has the letters in this order.
Set in_fish(const ShellFolder& folder, const std::string& line) {
  const std::string output = folder.output(
      {"fish", "--no-config", "-c",
       "source ./fish; ln -sf " + kLnorm + " lnorm; set PATH . $PATH; complete -C $argv[1]",
       "lnorm" + line});
  Set words;
  for (const std::string& found : lines_of(output)) {
    if (found.starts_with(last_word(line))) words.insert(found.substr(0, found.find('\t')));
  }
  return words;
}

// The line after a tab. What is waited for does not stand in what is typed, which a terminal may echo.
constexpr const char* kZsh = R"(
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell 'PS1= PS2= RPS1=; unset zle_bracketed_paste; stty -echo; fpath=($PWD $fpath)'
zpty -w shell 'autoload -Uz compinit; compinit -u -d ./dump; zle_highlight=none'
zpty -w shell 'show() { print -r -- "<${:-<}$BUFFER>${:->}"; zle -I; exit }; zle -N show; bindkey "^X" show; print REA''DY'
zpty -r shell output '*READY*'
zpty -w -n shell "$1"$'\t'
zpty -w -n shell $'\x18'
zpty -r shell output '*<<*>>*'
print -r -- ${${output##*'<<'}%'>>'*}
)";

std::string in_zsh(const ShellFolder& folder, const std::string& line) {
  std::string completed = folder.output({"zsh", "-f", "-c", kZsh, "zsh", kLnorm + line});
  completed.erase(completed.find_last_not_of(" \r\n") + 1);
  return completed.substr(completed.find_last_of(' ') + 1);
}

struct Completion {
  std::string line;
  std::string word;  // the last one when it is complete; as it was if nothing is offered
};

const std::vector<Completion> kCompletions{
    {" sof", "softmax"},
    {" mod", "model.npz"},
    {" stats --hist", "--histogram"},
    {" show --hist", "--hist"},
    {" --vers", "--version"},
    {" show --vers", "--vers"},
    {" ~/model.npz:g", "~/model.npz:gamma"},
    {" x.npy --weight model.npz:n", "model.npz:n"},
    {" x.npy --eps-on s", "std"},
    {" softmax x.npy --to saf", "safetensors"},
    {" softmax x.npy --to=saf", "--to=safetensors"},
    {" x.npy --eps mod", "mod"},
    {" x.npy -o mod", "model.npz"},
    {" model.npz:g", "model.npz:gamma"},
    {" compare x.npy model.npz:g", "model.npz:gamma"},
    {" x.npy --weight model.npz:g", "model.npz:gamma"},
    {" x.npy --weight=model.npz:g", "--weight=model.npz:gamma"},
};

// What is offered is the whole word, or what bash takes for one.
Set offered(const Completion& c, bool apart) {
  if (last_word(c.line) == c.word) return {};
  return {apart ? c.word.substr(c.word.find_last_of(":=") + 1) : c.word};
}

}  // namespace

TEST_CASE("bash completes commands, options, their values and tensors", "[generate]") {
  const ShellFolder folder;
  for (const Completion& c : kCompletions) {
    CAPTURE(c.line);
    CHECK(in_bash(folder, c.line) == offered(c, true));
  }
  for (const std::string& command : commands()) {
    CAPTURE(command);
    CHECK(in_bash(folder, " " + command + " -") == options_in_help(command));
  }
}

TEST_CASE("fish completes commands, options, their values and tensors", "[generate]") {
  const ShellFolder folder;
  for (const Completion& c : kCompletions) {
    CAPTURE(c.line);
    CHECK(in_fish(folder, c.line) == offered(c, false));
  }
  for (const std::string& command : commands()) {
    CAPTURE(command);
    Set options = in_fish(folder, " " + command + " -");
    options.merge(in_fish(folder, " " + command + " --"));
    CHECK(options == options_in_help(command));
  }
}

TEST_CASE("zsh completes commands, options, their values and tensors", "[generate]") {
  const ShellFolder folder;
  for (const Completion& c : kCompletions) {
    CAPTURE(c.line);
    CHECK(in_zsh(folder, c.line) == c.word);
  }
}

TEST_CASE("the manual has a page for each command, with all of its options", "[generate]") {
  const Workplace dir;
  REQUIRE(commands().size() >= 5);
  std::vector<Words> pages{{}};
  for (const std::string& command : commands()) pages.push_back({command});
  for (const Words& page : pages) {
    CAPTURE(page);
    const Words arguments = "--generate man"_w + page;
    dir.write("page.1", output_of(arguments));
    const auto mandoc = [&](const Words& options) {
      Words words{"mandoc"};
      words += options;
      words.push_back(dir / "page.1");
      return run(Command{.arguments = words, .program = "/usr/bin/env"});
    };
    CHECK(mandoc("-Tlint -Wwarning"_w).out == "");
    const std::string text = mandoc({"-Tutf8"}).out;
    const std::string plain = std::regex_replace(text, std::regex(".\b"), "");
    for (const char* section : {"NAME", "SYNOPSIS", "OPTIONS", "EXAMPLES", "SEE ALSO"}) {
      CHECK(contains(plain, std::string("\n") + section + "\n"));
    }
    if (page.empty()) {
      for (const std::string& command : commands()) {
        CHECK(contains(plain, "lnorm-" + command + "(1)"));
        // What is installed is listed there.
        const std::string installed = read_file(LNORM_SOURCE_DIR "/packaging/CMakeLists.txt");
        CHECK(std::regex_search(installed,
                                std::regex("foreach\\(command [a-z ]*\\b" + command + "\\b")));
      }
    } else {
      for (const std::string& option : options_in_help(page.front())) {
        CAPTURE(option);
        CHECK(std::regex_search(plain, std::regex("\n +(.*, )?" + option + "[ ,\n]")));
      }
    }
  }
}

TEST_CASE("the names that completions ask for are those of a file's tensors", "[generate]") {
  const Workplace dir;
  dir.write("two.safetensors",
            safetensors(R"({"a b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                        R"("h.0:w":{"dtype":"U8","shape":[1],"data_offsets":[1,2]},)"
                        R"("two\nlines":{"dtype":"U8","shape":[0],"data_offsets":[2,2]}})",
                        "xy"));
  CHECK(dir.output("--generate names two.safetensors"_w) == "a b\nh.0:w\n");
  CHECK(output_of({"--generate", "names", data_file("sample.npy")}).empty());
  CHECK(dir.fault("--generate names none.npz"_w, {"none.npz"}) == "");
  CHECK(fault_of("--generate pdf"_w, "--generate man bash"_w) == "");
  CHECK(fault_of("--generate man none"_w, {"--generate", "man COMMAND"}) == "");
}
