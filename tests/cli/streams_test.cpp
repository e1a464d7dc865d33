#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <numeric>

#include "support/catch.hpp"
#include "support/files.hpp"
#include "support/process.hpp"

// Where the bytes come from and where they go: pipes, files, devices, terminals.

namespace {

using namespace support;
namespace fs = std::filesystem;

const std::string kRow = npy("<f4", {2, 2}, bytes_of<float>({1, 3, 10, 30}));
const std::string kRowNormalized = npy("<f4", {2, 2}, bytes_of<float>({-1, 1, -1, 1}));
const std::vector<std::string> kFiles{"x.npy", "y.npy"};

// 2 MB, more than any buffer between two programs.
std::string big() {
  std::vector<float> elements(500'000);
  std::iota(elements.begin(), elements.end(), 0.0F);
  return npy("<f4", {1000, 500}, bytes_of(elements));
}

// x.npy, and an older y.npy that a run may replace.
struct Workplace {
  Workplace() {
    write_file(directory / "x.npy", kRow);
    write_file(directory / "y.npy", "old");
  }
  Command command(std::vector<std::string> arguments) const {
    return {.arguments = std::move(arguments), .directory = directory.path().string()};
  }
  void check_untouched() const {
    CHECK(list_directory(directory.path()) == kFiles);
    CHECK(difference(read_file(directory / "y.npy"), "old") == "");
    CHECK(difference(read_file(directory / "x.npy"), kRow) == "");
  }
  TempDir directory;
};

}  // namespace

TEST_CASE("a reader that leaves early does not cost the other outputs anything", "[cli]") {
  const TempDir directory;
  write_file(directory / "big.npy", big());
  const std::vector<std::string> all{"big.npy", "-o", "y.npy", "--save-mean", "all.npy"};
  output_of({.arguments = all, .directory = directory.path().string()});
  output_of({.arguments = {"big.npy", "--save-mean", "mean.npy"},
             .out = pipe_until(100),
             .directory = directory.path().string()});
  CHECK(difference(read_file(directory / "mean.npy"), read_file(directory / "all.npy")).empty());
}

TEST_CASE("a run that a signal ends leaves the old output and no temporary file") {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    CAPTURE(signal);
    const Workplace workplace;
    // The program waits for a row that does not come, its output begun.
    int input[2];
    REQUIRE(::pipe2(input, O_CLOEXEC) == 0);
    const std::string header = npy("<f4", {2, 2}, "");
    REQUIRE(::write(input[1], header.data(), header.size()) == std::ssize(header));
    const ::pid_t program = ::fork();
    REQUIRE(program >= 0);
    if (program == 0) {
      std::signal(signal, SIG_DFL);
      ::dup2(input[0], STDIN_FILENO);
      const std::string output = workplace.directory / "y.npy";
      ::execl(LNORM_BINARY, LNORM_BINARY, "-o", output.c_str(), nullptr);
      ::_exit(127);
    }
    const auto begun = [&] { return list_directory(workplace.directory.path()).size() == 3; };
    for (int i = 0; i < 1000 && !begun(); ++i) ::usleep(10'000);
    CHECK(begun());
    REQUIRE(::kill(program, signal) == 0);
    int status = 0;
    REQUIRE(::waitpid(program, &status, 0) == program);
    CHECK(WIFSIGNALED(status));
    CHECK(WTERMSIG(status) == signal);
    workplace.check_untouched();
    ::close(input[0]);
    ::close(input[1]);
  }
}

TEST_CASE("a descriptor that was handed over is written where it stands") {
  const TempDir directory;
  write_file(directory / "x.json", "[1, 3]");
  const std::string expected = "before\n[-0.9999950000374996,0.9999950000374996]\nafter\n";
  for (const std::string name : {"/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "-"}) {
    CAPTURE(name);
    const std::string script =
        "exec > y; echo before; " LNORM_BINARY " x.json -o " + name + "; echo after";
    const Outcome outcome = run({.arguments = {"-ec", script},
                                 .directory = directory.path().string(),
                                 .program = "/bin/sh"});
    CHECK(outcome.status == 0);
    CHECK(read_file(directory / "y") == expected);
    CHECK(list_directory(directory.path()) == std::vector<std::string>{"x.json", "y"});
  }
}

TEST_CASE("a limit on the size of files is an error like a full disk") {
  const Workplace workplace;
  write_file(workplace.directory / "x.npy", big());
  const std::string script = "ulimit -f 1; exec " LNORM_BINARY " x.npy -o y.npy";
  const Outcome outcome = run({.arguments = {"-ec", script},
                               .directory = workplace.directory.path().string(),
                               .program = "/bin/sh"});
  CHECK(refusal_fault(outcome, {"y.npy: File too large"}) == "");
  CHECK(list_directory(workplace.directory.path()) == kFiles);
  CHECK(read_file(workplace.directory / "y.npy") == "old");
}

TEST_CASE("help that cannot be written is an error") {
  for (const auto& arguments :
       {std::vector<std::string>{"--help"}, {"apply", "--help"}, {"--version"}}) {
    CAPTURE(arguments);
    const Outcome outcome = run({.arguments = arguments, .out = file("/dev/full")});
    CHECK(refusal_fault(outcome, {"standard output", "No space left"}) == "");
  }
}

TEST_CASE("the memory of a run does not grow with the tensor") {
  const TempDir directory;
  const auto peak_kib = [&](std::int64_t rows) {
    constexpr std::int64_t kLength = 1024;
    write_file(directory / "x.npy", npy("<f4", {rows, kLength}, ""));
    // The elements are a hole in the file: zeros.
    fs::resize_file(directory / "x.npy", static_cast<std::uintmax_t>(128 + rows * kLength * 4));
    const Outcome outcome =
        run({directory / "x.npy", "-o", "/dev/null", "--save-mean", "/dev/null"});
    REQUIRE(outcome.status == 0);
    return outcome.peak_kib;
  };
  const long small = peak_kib(8 * 1024);
  const long large = peak_kib(128 * 1024);
  CAPTURE(small, large);
  CHECK(large < small + 4 * 1024);
}

TEST_CASE("apply reads a pipe and writes the same bytes as from a file") {
  const TempDir directory;
  for (const std::string& bytes : {kRow, big(), std::string("[[1,2,4],[8,16,33]]")}) {
    const std::string x = directory / "x";
    const std::string y = directory / "y";
    write_file(x, bytes);
    CHECK(output_of({x, "-o", y}) == "");
    const std::string expected = read_file(y);
    CHECK(expected.size() > 20);
    CHECK(difference(output_of({}, pipe_of(bytes)), expected) == "");
    CHECK(difference(output_of({"-"}, pipe_of(bytes)), expected) == "");
    CHECK(difference(output_of({}, file(x)), expected) == "");
    CHECK(difference(output_of({x}), expected) == "");
    CHECK(difference(output_of({"apply", x, "-o", "-"}), expected) == "");
    CHECK(output_of({.arguments = {x}, .out = file(y)}) == "");
    CHECK(difference(read_file(y), expected) == "");
  }
}

TEST_CASE("two programs in a pipe give what they give through files") {
  const TempDir directory;
  const std::string once = output_of({"--axis", "0"}, pipe_of(big()));
  const std::string twice = output_of({"--from", "npy"}, pipe_of(once));
  write_file(directory / "x.npy", big());
  CHECK(output_of({directory / "x.npy", "--axis", "0", "-o", directory / "y.npy"}) == "");
  CHECK(output_of({directory / "y.npy", "-o", directory / "z.npy"}) == "");
  CHECK(difference(read_file(directory / "z.npy"), twice) == "");
}

TEST_CASE("standard input may be handed over in the middle of a file") {
  const TempDir directory;
  write_file(directory / "two", kRow + kRow);
  const std::string skip =
      "dd bs=" + std::to_string(kRow.size()) + " count=1 of=/dev/null 2>/dev/null";
  const Outcome outcome = run({.arguments = {"-c", skip + "; exec \"$0\" --eps 0", LNORM_BINARY},
                               .in = file(directory / "two"),
                               .program = "/bin/sh"});
  CHECK(outcome.status == 0);
  CHECK(difference(outcome.out, kRowNormalized) == "");
}

TEST_CASE("the output may be the input") {
  const Workplace at;
  const std::string expected = output_of(at.command({"x.npy"}));
  CHECK(output_of(at.command({"x.npy", "-o", "x.npy"})) == "");
  CHECK(difference(read_file(at.directory / "x.npy"), expected) == "");
  write_file(at.directory / "x.npy", big());
  const std::string expected_big = output_of(at.command({"x.npy", "--bias", "1"}));
  CHECK(output_of(at.command({"x.npy", "--bias", "1", "-o", "x.npy"})) == "");
  CHECK(difference(read_file(at.directory / "x.npy"), expected_big) == "");
  CHECK(list_directory(at.directory.path()) == kFiles);
}

TEST_CASE("a reader that leaves early is no failure") {
  for (const std::string to : {"npy", "json", "text"}) {
    CAPTURE(to);
    std::vector<std::string> arguments{"--to", to};
    if (to == "text") arguments.insert(arguments.end(), {"--threshold", "1000000"});
    const Outcome outcome =
        run({.arguments = arguments, .in = pipe_of(big()), .out = pipe_until(100)});
    CHECK(outcome.status == 0);
    CHECK(outcome.err == "");
    CHECK(outcome.out.size() == 100);
  }
}

TEST_CASE("a full disk is one clear line and leaves nothing behind") {
  const Workplace at;
  write_file(at.directory / "big.npy", big());
  struct Case {
    std::vector<std::string> options;
    Stream out;
    std::string name;
  };
  const std::vector<Case> cases{
      {{}, file("/dev/full"), "standard output"},
      {{"--to", "json"}, file("/dev/full"), "standard output"},
      {{"--save-mean", "m.npy"}, file("/dev/full"), "standard output"},
      {{"-o", "/dev/full"}, {}, "/dev/full"},
      {{"-o", "y.npy", "--save-mean", "/dev/full"}, {}, "/dev/full"},
      {{"-o", "y.npy", "--save-mean", "m.npy", "--save-rstd", "/dev/full"}, {}, "/dev/full"},
      {{"-o", "new.npy", "--save-rstd", "/dev/full"}, {}, "/dev/full"},
  };
  for (const std::string input : {"x.npy", "big.npy"}) {
    for (const Case& c : cases) {
      CAPTURE(input, c.options);
      Command command = at.command({input});
      command.arguments.insert(command.arguments.end(), c.options.begin(), c.options.end());
      command.out = c.out;
      CHECK(refusal_fault(run(command), {c.name + ": No space left on device"}) == "");
      CHECK(list_directory(at.directory.path()) ==
            std::vector<std::string>{"big.npy", "x.npy", "y.npy"});
      CHECK(difference(read_file(at.directory / "y.npy"), "old") == "");
    }
  }
}

TEST_CASE("a run that fails leaves the old output and no temporary file") {
  struct Case {
    std::vector<std::string> options;
    std::string input;
  };
  const std::vector<Case> cases{
      {{}, kRow.substr(0, kRow.size() - 1)},  // found when the output is open already
      {{}, kRow + "x"},
      {{}, big() + "x"},
      {{}, "[[1,2],[3]]"},
      {{"--weight", "[1,2,3]"}, kRow},
      {{"--ddof", "2"}, kRow},
      {{"--save-mean", "no/m.npy"}, kRow},
  };
  for (const Case& c : cases) {
    CAPTURE(c.options, c.input.substr(0, 20));
    const Workplace at;
    Command command = at.command({"-o", "y.npy"});
    command.arguments.insert(command.arguments.end(), c.options.begin(), c.options.end());
    command.in = pipe_of(c.input);
    CHECK(refusal_fault(run(command), {}) == "");
    at.check_untouched();
  }
}

TEST_CASE("an output keeps its permissions, a new one gets the usual ones") {
  const Workplace at;
  const auto mode = [&](const char* name) {
    struct stat status {};
    REQUIRE(::stat((at.directory / name).c_str(), &status) == 0);
    return status.st_mode & 07777;
  };
  REQUIRE(::chmod((at.directory / "y.npy").c_str(), 0604) == 0);
  const mode_t before = ::umask(027);
  CHECK(output_of(at.command({"x.npy", "-o", "y.npy", "--save-mean", "m.npy"})) == "");
  ::umask(before);
  CHECK(mode("y.npy") == 0604);
  CHECK(mode("m.npy") == 0640);
}

TEST_CASE("an output that is a symbolic link is followed") {
  const Workplace at;
  fs::create_directory(at.directory / "far");
  write_file(at.directory / "far/real.npy", "old");
  fs::create_symlink("far/real.npy", at.directory / "link.npy");
  CHECK(output_of(at.command({"x.npy", "--eps", "0", "-o", "link.npy"})) == "");
  CHECK(fs::is_symlink(at.directory / "link.npy"));
  CHECK(difference(read_file(at.directory / "far/real.npy"), kRowNormalized) == "");
  CHECK(list_directory(at.directory / "far") == std::vector<std::string>{"real.npy"});
}

TEST_CASE("a FIFO is written in place") {
  const Workplace at;
  const std::string fifo = at.directory / "fifo";
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  const int fd = ::open(fifo.c_str(), O_RDWR | O_NONBLOCK);
  REQUIRE(fd >= 0);
  CHECK(output_of(at.command({"x.npy", "--eps", "0", "-o", "fifo"})) == "");
  std::string got(4096, '\0');
  const ssize_t count = ::read(fd, got.data(), got.size());
  ::close(fd);
  got.resize(count < 0 ? 0 : static_cast<std::size_t>(count));
  CHECK(got == kRowNormalized);
  CHECK(fs::is_fifo(fifo));
}

TEST_CASE("a terminal gets text, and binary only if asked") {
  const Workplace at;
  const std::string text = "tensor([[-1.,  1.],\n        [-1.,  1.]])\n";
  const auto on_terminal = [&](std::vector<std::string> options) {
    options.insert(options.begin(), {"x.npy", "--eps", "0"});
    Command command = at.command(std::move(options));
    command.out = terminal();
    return command;
  };
  CHECK(output_of(on_terminal({})) == text);
  CHECK(output_of(on_terminal({"--to", "text"})) == text);
  CHECK(output_of(on_terminal({"--to", "json"})) == "[[-1.0,1.0],[-1.0,1.0]]\n");
  CHECK(difference(output_of(on_terminal({"--to", "npy"})), kRowNormalized) == "");
  CHECK(output_of(on_terminal({"-o", "/dev/stdout"})) == text);
  CHECK(output_of({.arguments = {"--eps", "0"}, .in = pipe_of("[1,3]"), .out = terminal()}) ==
        "tensor([-1.,  1.], dtype=torch.float64)\n");
  at.check_untouched();
  CHECK(refusal_fault(run(on_terminal({"-o", "y.npy", "--save-mean", "/dev/stdout"})),
                      {"/dev/stdout", "binary", "terminal"}) == "");
  at.check_untouched();
  CHECK(output_of(on_terminal({"-o", "y.npy"})) == "");
  CHECK(difference(read_file(at.directory / "y.npy"), kRowNormalized) == "");
}

TEST_CASE("without INPUT at a terminal the short help is printed") {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{}, {"apply"}, {"--eps", "0"}}) {
    CAPTURE(arguments);
    const Outcome outcome = run(arguments, terminal());
    CHECK(outcome.status == 2);
    CHECK(outcome.out == "");
    CHECK(outcome.err.find("Usage: lnorm") != std::string::npos);
    CHECK(outcome.err.find("lnorm: ") == std::string::npos);
  }
}

TEST_CASE("closed standard streams are no place for other files") {
  const Workplace at;
  Command no_input = at.command({"-o", "y.npy"});
  no_input.in = closed();
  CHECK(refusal_fault(run(no_input), {"standard input"}) == "");
  at.check_untouched();
  Command no_output = at.command({"--save-mean", "y.npy"});
  no_output.in = pipe_of(kRow);
  no_output.out = closed();
  CHECK(refusal_fault(run(no_output), {"standard output"}) == "");
  at.check_untouched();
}

TEST_CASE("text of every element of a long tensor has the numbers of the tensor", "[cli]") {
  const TempDir directory;
  const auto run = [&](std::vector<std::string> arguments) {
    return output_of({.arguments = std::move(arguments), .directory = directory.path().string()});
  };
  write_file(directory / "big.npy", big());
  for (const std::string axes : {"1", "0", "0,1"}) {
    CAPTURE(axes);
    run({"big.npy", "--axes", axes, "-o", "y.npy"});
    run({"big.npy", "--axes", axes, "-o", "y.txt"});
    const std::string text = read_file(directory / "y.txt");
    CHECK(difference(run({"show", "y.npy", "--threshold", "500000"}), text).empty());
    const std::string elements = read_file(directory / "y.npy").substr(128);
    const char* const format = text.find('e', 8) < text.size() ? "%.4e" : "%.4f";
    std::size_t at = text.find_first_of("-0123456789");
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < elements.size(); i += sizeof(float)) {
      float element;
      std::memcpy(&element, elements.data() + i, sizeof element);
      std::array<char, 40> expected;
      const int length =
          std::snprintf(expected.data(), expected.size(), format, static_cast<double>(element));
      const std::size_t end = text.find_first_of(",]", at);
      wrong += text.substr(at, end - at) ==
                       std::string_view(expected.data(), static_cast<std::size_t>(length))
                   ? 0
                   : 1;
      at = std::min(text.find_first_of("-0123456789", end), text.size());
    }
    CHECK(wrong == 0);
    CHECK(at == text.size());
  }
}

TEST_CASE("outputs of one number a column or row are written as long text as well", "[cli]") {
  const TempDir directory;
  const std::string elements(4 * 300'000, '\0');
  write_file(directory / "x.npy", npy("<f4", {1, 300'000}, elements));
  write_file(directory / "column.npy", npy("<f4", {300'000, 1}, elements));
  const auto run = [&](std::vector<std::string> arguments) {
    output_of({.arguments = std::move(arguments), .directory = directory.path().string()});
  };
  run({"grad", "x.npy", "--dy", "x.npy", "--dweight", "dw.npy"});
  run({"grad", "x.npy", "--dy", "x.npy", "--dweight", "dw.txt"});
  run({"column.npy", "-o", "y.npy", "--save-mean", "mean.txt"});
  const std::string zeros = read_file(directory / "dw.txt");
  CHECK(std::count(zeros.begin(), zeros.end(), '0') == 300'000);
  CHECK(difference(zeros.substr(0, 16), "tensor([0., 0., ").empty());
  const std::string mean = read_file(directory / "mean.txt");
  CHECK(std::count(mean.begin(), mean.end(), '0') == 300'000);
  CHECK(mean.ends_with("dtype=torch.float64)\n"));
}
