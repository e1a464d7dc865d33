#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include "support/catch.hpp"
#include "support/files.hpp"
#include "support/process.hpp"

// One tensor a line.

namespace {

using namespace support;

const std::string kLines =
    "[1, 2, 3]\n\n[[4, 5, 6], [7, 8, 10]]\r\n  {\"shape\": [2], \"data\": [1, 3]}";

struct Workplace {
  Workplace() { write_file(directory / "x.jsonl", kLines); }
  Outcome run(std::vector<std::string> arguments, Stream in = {}) const {
    return support::run({.arguments = std::move(arguments),
                         .in = std::move(in),
                         .directory = directory.path().string()});
  }
  std::string output(std::vector<std::string> arguments, Stream in = {}) const {
    return output_of({.arguments = std::move(arguments),
                      .in = std::move(in),
                      .directory = directory.path().string()});
  }
  TempDir directory;
};

// What the program makes of one of the lines alone.
std::string alone(std::vector<std::string> arguments, const std::string& line) {
  return output_of(std::move(arguments), pipe_of(line));
}

}  // namespace

TEST_CASE("every line is a tensor, and gives a line as if it were alone", "[jsonl]") {
  const Workplace place;
  for (const std::vector<std::string>& options :
       {std::vector<std::string>{}, {"--rms", "--weight", "2"}, {"--dtype", "float32"}}) {
    std::vector<std::string> arguments{"x.jsonl"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    const std::string expected = alone(options, "[1, 2, 3]") +
                                 alone(options, "[[4, 5, 6], [7, 8, 10]]") +
                                 alone(options, "[1, 3]");
    CHECK(place.output(arguments) == expected);
    arguments[0] = "--from=jsonl";
    CHECK(place.output(arguments, pipe_of(kLines)) == expected);
    arguments.insert(arguments.end(), {"-o", "y.jsonl"});
    CHECK(place.output(arguments, pipe_of(kLines)) == "");
    CHECK(read_file(place.directory / "y.jsonl") == expected);
  }
  CHECK(place.output({"softmax", "x.jsonl", "--to", "text"}) ==
        alone({"softmax", "--to", "text"}, "[1, 2, 3]") +
            alone({"softmax", "--to", "text"}, "[[4, 5, 6], [7, 8, 10]]") +
            alone({"softmax", "--to", "text"}, "[1, 3]"));
  CHECK(place.output({"show", "x.jsonl"}) == alone({"show"}, "[1, 2, 3]") +
                                                 alone({"show"}, "[[4, 5, 6], [7, 8, 10]]") +
                                                 alone({"show"}, "[1, 3]"));
}

TEST_CASE("mean and rstd have a line for every line", "[jsonl]") {
  const Workplace place;
  place.output({"x.jsonl", "-o", "y.jsonl", "--save-mean", "mean.jsonl", "--save-rstd", "rstd.txt",
                "--no-keepdim", "--eps", "0"});
  CHECK(read_file(place.directory / "mean.jsonl") == "2.0\n[5.0,8.333333333333334]\n2.0\n");
  CHECK(read_file(place.directory / "rstd.txt").find("tensor(1., dtype=torch.float64)") !=
        std::string::npos);
}

TEST_CASE("stats reports on every line", "[jsonl]") {
  const Workplace place;
  const std::string json = place.output({"stats", "x.jsonl", "--json"});
  CHECK(std::count(json.begin(), json.end(), '\n') == 3);
  CHECK(json.find("\"name\":\"x.jsonl:3\"") != std::string::npos);
  const std::string text = place.output({"stats", "x.jsonl"});
  CHECK(text.find("x.jsonl:1: float64, shape (3)") == 0);
  CHECK(text.find("\n\nx.jsonl:3: float64, shape (2, 3)") != std::string::npos);
  CHECK(refusal_fault(place.run({"stats", "x.jsonl", "--csv"}), {"JSON Lines", "hint: "}) == "");
}

TEST_CASE("a line is named by its number", "[jsonl]") {
  const Workplace place;
  CHECK(place.output({"x.jsonl:3"}) == alone({}, "[[4, 5, 6], [7, 8, 10]]"));
  CHECK(place.output({"x.jsonl:4", "-o", "y.npy"}) == "");
  CHECK(place.output({"x.jsonl:1", "--weight", "x.jsonl:1"}) ==
        alone({"--weight", "[1, 2, 3]"}, "[1, 2, 3]"));
  CHECK(place.run({"compare", "x.jsonl:1", "x.jsonl:1", "-q"}).status == 0);
  CHECK(place.run({"compare", "x.jsonl:1", "x.jsonl:4", "-q"}).status == 1);
  const std::vector<std::pair<std::string, std::string>> refused{
      {"x.jsonl:2", "there is no tensor in line 2"},
      {"x.jsonl:5", "there is no tensor in line 5"},
      {"x.jsonl:0", "named by their numbers"},
      {"x.jsonl:one", "found no object with a member 'one'"}};
  for (const auto& [name, words] : refused) {
    CHECK(refusal_fault(place.run({name}), {"x.jsonl", words}) == "");
  }
  CHECK(refusal_fault(place.run({"compare", "x.jsonl", "x.jsonl:1"}),
                      {"x.jsonl", "several", "hint: ", "x.jsonl:1"}) == "");
}

TEST_CASE("a bad line is named, and what comes before it has been written", "[jsonl]") {
  const Workplace place;
  const std::vector<std::pair<std::string, std::vector<std::string>>> bad{
      {"[1, 2", {":3:1: ", "not closed"}},
      {"[1, \"a\"]", {":3:5: [1] is a string"}},
      {"[[1], [2, 3]]", {":3:7: row 1 has 2 elements"}},
      {"[1] [2]", {":3:5: ", "after the value"}},
      {"{\"a\": [1], \"b\": [1]}", {":3:1: found an object of a, b"}},
      {std::string("[1,\0 2]", 7), {":3:"}},
  };
  for (const auto& [line, words] : bad) {
    CAPTURE(line);
    write_file(place.directory / "bad.jsonl", "[1, 3]\n\n" + line + "\n[2, 4]\n");
    Outcome outcome = place.run({"bad.jsonl", "--eps", "0"});
    CHECK(outcome.out == "[-1.0,1.0]\n");
    outcome.out.clear();
    CHECK(refusal_fault(outcome, words) == "");
    CHECK(refusal_fault(outcome, {"bad.jsonl"}) == "");
    // A file appears whole or not at all.
    CHECK(place.run({"bad.jsonl", "-o", "y.jsonl"}).status == 2);
    CHECK(list_directory(place.directory.path()) ==
          std::vector<std::string>{"bad.jsonl", "x.jsonl"});
  }
  write_file(place.directory / "bad.jsonl", "[1, 3]\n[1, 2, 3]\n");
  Outcome outcome = place.run({"bad.jsonl", "--eps", "0", "--weight", "[1, 2]"});
  CHECK(outcome.out == "[-1.0,2.0]\n");
  outcome.out.clear();
  CHECK(refusal_fault(outcome, {"bad.jsonl:2: ", "--weight has shape (2)", "(3)"}) == "");
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
  const Workplace place;
  CHECK(place.output({"--from", "jsonl"}) == "");
  CHECK(place.output({"--from", "jsonl", "-o", "y.jsonl"}, pipe_of("\n \n")) == "");
  CHECK(read_file(place.directory / "y.jsonl").empty());
  for (const char* const path : {"y.npy", "y.json", "y.safetensors"}) {
    CHECK(refusal_fault(place.run({"x.jsonl", "-o", path}), {path, "JSON Lines", "hint: "}) == "");
  }
  CHECK(refusal_fault(place.run({"x.jsonl", "-o", "y.jsonl", "--save-mean", "mean.npy"}),
                      {"mean.npy", "JSON Lines"}) == "");
  CHECK(place.output({"--to", "jsonl"}, pipe_of("[[1, 3],\n [2, 4]]")) ==
        alone({}, "[[1, 3], [2, 4]]"));
}
