#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include "support/commands.hpp"

// One tensor a line.

namespace {

using namespace support;

const std::string kLines =
    "[1, 2, 3]\n\n[[4, 5, 6], [7, 8, 10]]\r\n  {\"shape\": [2], \"data\": [1, 3]}";

struct LinesFile : Workplace {
  LinesFile() { write("x.jsonl", kLines); }
};

// What the program makes of one of the lines alone.
std::string alone(Words arguments, const std::string& line) {
  return output_of(std::move(arguments), pipe_of(line));
}

}  // namespace

TEST_CASE("every line is a tensor, and gives a line as if it were alone", "[jsonl]") {
  const LinesFile place;
  for (const Words& options : {Words{}, "--rms --weight 2"_w, "--dtype float32"_w}) {
    Words arguments{"x.jsonl"};
    arguments += options;
    const std::string expected = alone(options, "[1, 2, 3]") +
                                 alone(options, "[[4, 5, 6], [7, 8, 10]]") +
                                 alone(options, "[1, 3]");
    CHECK(place.output(arguments) == expected);
    arguments[0] = "--from=jsonl";
    CHECK(place.output(arguments, pipe_of(kLines)) == expected);
    arguments += "-o y.jsonl"_w;
    CHECK(place.output(arguments, pipe_of(kLines)) == "");
    CHECK(place.read("y.jsonl") == expected);
  }
  CHECK(place.output("softmax x.jsonl --to text"_w) ==
        alone("softmax --to text"_w, "[1, 2, 3]") +
            alone("softmax --to text"_w, "[[4, 5, 6], [7, 8, 10]]") +
            alone("softmax --to text"_w, "[1, 3]"));
  CHECK(place.output("show x.jsonl"_w) == alone({"show"}, "[1, 2, 3]") +
                                              alone({"show"}, "[[4, 5, 6], [7, 8, 10]]") +
                                              alone({"show"}, "[1, 3]"));
}

TEST_CASE("mean and rstd have a line for every line", "[jsonl]") {
  const LinesFile place;
  place.output(
      "x.jsonl -o y.jsonl --save-mean mean.jsonl --save-rstd rstd.txt --no-keepdim --eps 0"_w);
  CHECK(place.read("mean.jsonl") == "2.0\n[5.0,8.333333333333334]\n2.0\n");
  CHECK(contains(place.read("rstd.txt"), "tensor(1., dtype=torch.float64)"));
}

TEST_CASE("stats reports on every line", "[jsonl]") {
  const LinesFile place;
  const std::string json = place.output("stats x.jsonl --json"_w);
  CHECK(std::count(json.begin(), json.end(), '\n') == 3);
  CHECK(contains(json, "\"name\":\"x.jsonl:3\""));
  const std::string text = place.output("stats x.jsonl"_w);
  CHECK(text.find("x.jsonl:1: float64, shape (3)") == 0);
  CHECK(contains(text, "\n\nx.jsonl:3: float64, shape (2, 3)"));
  CHECK(place.fault("stats x.jsonl --csv"_w, {"JSON Lines", "hint: "}) == "");
}

TEST_CASE("a line is named by its number", "[jsonl]") {
  const LinesFile place;
  CHECK(place.output({"x.jsonl:3"}) == alone({}, "[[4, 5, 6], [7, 8, 10]]"));
  CHECK(place.output("x.jsonl:4 -o y.npy"_w) == "");
  CHECK(place.output("x.jsonl:1 --weight x.jsonl:1"_w) ==
        alone({"--weight", "[1, 2, 3]"}, "[1, 2, 3]"));
  CHECK(place.run("compare x.jsonl:1 x.jsonl:1 -q"_w).status == 0);
  CHECK(place.run("compare x.jsonl:1 x.jsonl:4 -q"_w).status == 1);
  const std::vector<std::pair<std::string, std::string>> refused{
      {"x.jsonl:2", "there is no tensor in line 2"},
      {"x.jsonl:5", "there is no tensor in line 5"},
      {"x.jsonl:0", "named by their numbers"},
      {"x.jsonl:one", "found no object with a member 'one'"}};
  for (const auto& [name, words] : refused) {
    CHECK(place.fault({name}, {"x.jsonl", words}) == "");
  }
  CHECK(place.fault("compare x.jsonl x.jsonl:1"_w, {"x.jsonl", "several", "hint: ", "x.jsonl:1"}) ==
        "");
}

TEST_CASE("a bad line is named, and what comes before it has been written", "[jsonl]") {
  const LinesFile place;
  const std::vector<std::pair<std::string, Words>> bad{
      {"[1, 2", {":3:1: ", "not closed"}},
      {"[1, \"a\"]", {":3:5: [1] is a string"}},
      {"[[1], [2, 3]]", {":3:7: row 1 has 2 elements"}},
      {"[1] [2]", {":3:5: ", "after the first value"}},
      {"{\"a\": [1], \"b\": [1]}", {":3:1: found an object of a, b"}},
      {std::string("[1,\0 2]", 7), {":3:"}},
  };
  for (const auto& [line, words] : bad) {
    CAPTURE(line);
    place.write("bad.jsonl", "[1, 3]\n\n" + line + "\n[2, 4]\n");
    Outcome outcome = place.run("bad.jsonl --eps 0"_w);
    CHECK(outcome.out == "[-1.0,1.0]\n");
    outcome.out.clear();
    CHECK(refusal_fault(outcome, words) == "");
    CHECK(refusal_fault(outcome, {"bad.jsonl"}) == "");
    // A file appears whole or not at all.
    CHECK(place.run("bad.jsonl -o y.jsonl"_w).status == 2);
    CHECK(place.files() == Words{"bad.jsonl", "x.jsonl"});
  }
  place.write("bad.jsonl", "[1, 3]\n[1, 2, 3]\n");
  Outcome outcome = place.run({"bad.jsonl", "--eps", "0", "--weight", "[1, 2]"});
  CHECK(outcome.out == "[-1.0,2.0]\n");
  outcome.out.clear();
  CHECK(refusal_fault(outcome, {"bad.jsonl:2: ", "--weight has shape (2)", "(3)"}) == "");
}

TEST_CASE("what a line has beside its tensor is passed on, if it is JSON", "[jsonl]") {
  const Workplace files;
  for (const std::string beside :
       {"1e400", "[-1E999, {\"q\": [1e999]}]", "[NaN, 1]", "\"\\u00e9\""}) {
    files.write("x.jsonl", "{\"m\": " + beside + ", \"x\": [1, 1]}\n");
    CHECK(files.output("x.jsonl:x"_w) == "{\"m\": " + beside + ", \"x\": [0.0,0.0]}\n");
  }
  for (const std::string beside : {"\"\\ud800\"", "01", "[1,]"}) {
    files.write("x.jsonl", "{\"x\": [1, 1], \"m\": " + beside + "}\n");
    CHECK(files.fault("x.jsonl:x"_w, {"x.jsonl:1:1: member 'm' is not valid JSON"}) == "");
  }
}

TEST_CASE("show goes on after a bad line if it is told to, and fails at the end", "[jsonl]") {
  const Workplace place;
  place.write("bad.jsonl", "[1]\nnot\n[3]\n");
  const Outcome outcome = place.run("show bad.jsonl --keep-going"_w);
  CHECK(outcome.out == "tensor([1.], dtype=torch.float64)\ntensor([3.], dtype=torch.float64)\n");
  CHECK(outcome.err.find("bad.jsonl:2:1: ") != std::string::npos);
  CHECK(outcome.status == 2);
}

TEST_CASE("a result is there before the next line is", "[jsonl]") {
  int to[2];
  int from[2];
  REQUIRE(::pipe2(to, O_CLOEXEC) == 0);
  REQUIRE(::pipe2(from, O_CLOEXEC) == 0);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ::dup2(to[0], STDIN_FILENO);
    ::dup2(from[1], STDOUT_FILENO);
    ::execl(LNORM_BINARY, LNORM_BINARY, "--from", "jsonl", "--eps", "0",
            static_cast<char*>(nullptr));
    ::_exit(127);
  }
  ::close(to[0]);
  ::close(from[1]);
  for (int i = 0; i < 3; ++i) {
    REQUIRE(::write(to[1], "[1, 3]\n", 7) == 7);
    struct pollfd ready {
      .fd = from[0], .events = POLLIN, .revents = 0
    };
    REQUIRE(::poll(&ready, 1, 60'000) == 1);
    std::array<char, 200> line{};
    const ssize_t got = ::read(from[0], line.data(), line.size());
    REQUIRE(got > 0);
    CHECK(std::string_view(line.data(), static_cast<std::size_t>(got)) == "[-1.0,1.0]\n");
  }
  ::close(to[1]);
  int status = -1;
  CHECK(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  ::close(from[0]);
}

TEST_CASE("no lines are no tensors, and several do not fit into a file of one", "[jsonl]") {
  const LinesFile place;
  CHECK(place.output("--from jsonl"_w) == "");
  CHECK(place.output("--from jsonl -o y.jsonl"_w, pipe_of("\n \n")) == "");
  CHECK(place.read("y.jsonl").empty());
  for (const char* const path : {"y.npy", "y.json", "y.safetensors"}) {
    CHECK(place.fault({"x.jsonl", "-o", path}, {path, "JSON Lines", "hint: "}) == "");
  }
  CHECK(place.fault("x.jsonl -o y.jsonl --save-mean mean.npy"_w, {"mean.npy", "JSON Lines"}) == "");
  CHECK(place.output("--to jsonl"_w, pipe_of("[[1, 3],\n [2, 4]]")) ==
        alone({}, "[[1, 3], [2, 4]]"));
}
