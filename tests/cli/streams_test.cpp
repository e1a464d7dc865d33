#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "support/commands.hpp"

// Where the bytes come from and where they go: pipes, files, devices, terminals.

namespace {

using namespace support;
namespace fs = std::filesystem;

const std::string kRow = npy_of<float>({2, 2}, {1, 3, 10, 30});
const std::string kRowNormalized = npy_of<float>({2, 2}, {-1, 1, -1, 1});
const Words kFiles{"x.npy", "y.npy"};

// 2 MB, more than any buffer between two programs.
std::string big() { return waves({1000, 500}); }

// x.npy, and an older y.npy that a run may replace.
struct OldOutput : Workplace {
  OldOutput() {
    write("x.npy", kRow);
    write("y.npy", "old");
  }
  void check_untouched() const {
    CHECK(files() == kFiles);
    CHECK(difference(read("y.npy"), "old") == "");
    CHECK(difference(read("x.npy"), kRow) == "");
  }
};

}  // namespace

TEST_CASE("a reader that leaves early does not cost the other outputs anything", "[cli]") {
  const Workplace directory;
  directory.write("big.npy", big());
  const Words all = "big.npy -o y.npy --save-mean all.npy"_w;
  directory.output(all);
  output_of(directory.command("big.npy --save-mean mean.npy"_w).to(pipe_until(100)));
  CHECK(difference(directory.read("mean.npy"), directory.read("all.npy")) == "");
}

TEST_CASE("a run that a signal ends leaves the old output and no temporary file") {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGALRM, SIGUSR1, SIGUSR2, SIGXCPU}) {
    CAPTURE(signal);
    const OldOutput workplace;
    // The program waits for a row that does not come, its output begun.
    int input[2];
    REQUIRE(::pipe2(input, O_CLOEXEC) == 0);
    const std::string header = npy("<f4", {2, 2}, "");
    REQUIRE(::write(input[1], header.data(), header.size()) == std::ssize(header));
    const ::pid_t program = ::fork();
    REQUIRE(program >= 0);
    if (program == 0) {
      std::signal(signal, SIG_DFL);
      const rlimit no_core{};
      ::setrlimit(RLIMIT_CORE, &no_core);
      ::dup2(input[0], STDIN_FILENO);
      const std::string output = workplace / "y.npy";
      ::execl(LNORM_BINARY, LNORM_BINARY, "-o", output.c_str(), nullptr);
      ::_exit(127);
    }
    const auto begun = [&] { return workplace.files().size() == 3; };
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
  const Workplace directory;
  directory.write("x.json", "[1, 3]");
  const std::string expected = "before\n[-0.9999950000374996,0.9999950000374996]\nafter\n";
  for (const std::string name : {"/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "-"}) {
    CAPTURE(name);
    const std::string script =
        "set -e; exec > y; echo before; lnorm x.json -o " + name + "; echo after";
    CHECK(directory.shell(script).status == 0);
    CHECK(directory.read("y") == expected);
    CHECK(directory.files() == Words{"x.json", "y"});
  }
}

TEST_CASE("a limit on the size of files is an error like a full disk") {
  const OldOutput workplace;
  workplace.write("x.npy", big());
  CHECK(workplace.shell_fault("ulimit -f 1; exec lnorm x.npy -o y.npy",
                              {"y.npy: File too large"}) == "");
  CHECK(workplace.files() == kFiles);
  CHECK(workplace.read("y.npy") == "old");
}

TEST_CASE("help that cannot be written is an error") {
  for (const auto& arguments : {Words{"--help"}, "apply --help"_w, {"--version"}}) {
    CAPTURE(arguments);
    CHECK(fault_of({.arguments = arguments, .out = file("/dev/full")},
                   {"standard output", "No space left"}) == "");
  }
}

TEST_CASE("the memory of a run does not grow with the tensor", "[many]") {
  const Workplace directory;
  const auto peak_kib = [&](std::int64_t rows) {
    write_sparse_npy(directory / "x.npy", {rows, 1024});
    return peak_kib_of(directory.command("x.npy -o /dev/null --save-mean /dev/null"_w));
  };
  check_memory(peak_kib(8 * 1024), peak_kib(128 * 1024), 4 * 1024);
}

TEST_CASE("apply reads a pipe and writes the same bytes as from a file") {
  const Workplace directory;
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
  const Workplace directory;
  const std::string once = output_of("--axis 0"_w, pipe_of(big()));
  const std::string twice = output_of("--from npy"_w, pipe_of(once));
  directory.write("x.npy", big());
  CHECK(directory.output("x.npy --axis 0 -o y.npy"_w) == "");
  CHECK(directory.output("y.npy -o z.npy"_w) == "");
  CHECK(difference(directory.read("z.npy"), twice) == "");
}

TEST_CASE("standard input may be handed over in the middle of a file") {
  const Workplace directory;
  directory.write("two", kRow + kRow);
  const std::string skip =
      "dd bs=" + std::to_string(kRow.size()) + " count=1 of=/dev/null 2>/dev/null";
  CHECK(difference(directory.shell_output("{ " + skip + "; lnorm --eps 0; } < two"),
                   kRowNormalized) == "");
}

TEST_CASE("the output may be the input") {
  const OldOutput at;
  const std::string expected = at.output({"x.npy"});
  CHECK(at.output("x.npy -o x.npy"_w) == "");
  CHECK(difference(at.read("x.npy"), expected) == "");
  at.write("x.npy", big());
  const std::string expected_big = at.output("x.npy --bias 1"_w);
  CHECK(at.output("x.npy --bias 1 -o x.npy"_w) == "");
  CHECK(difference(at.read("x.npy"), expected_big) == "");
  CHECK(at.files() == kFiles);
}

TEST_CASE("a reader that leaves early is no failure") {
  for (const std::string to : {"npy", "json", "text"}) {
    CAPTURE(to);
    Words arguments{"--to", to};
    if (to == "text") arguments += "--threshold 1000000"_w;
    const Outcome outcome =
        run({.arguments = arguments, .in = pipe_of(big()), .out = pipe_until(100)});
    CHECK(outcome.status == 0);
    CHECK(outcome.err == "");
    CHECK(outcome.out.size() == 100);
  }
}

TEST_CASE("a full disk is one clear line and leaves nothing behind") {
  const OldOutput at;
  at.write("big.npy", big());
  struct Case {
    Words options;
    Stream out;
    std::string name;
  };
  const std::vector<Case> cases{
      {{}, file("/dev/full"), "standard output"},
      {"--to json"_w, file("/dev/full"), "standard output"},
      {"--save-mean m.npy"_w, file("/dev/full"), "standard output"},
      {"-o /dev/full"_w, {}, "/dev/full"},
      {"-o y.npy --save-mean /dev/full"_w, {}, "/dev/full"},
      {"-o y.npy --save-mean m.npy --save-rstd /dev/full"_w, {}, "/dev/full"},
      {"-o new.npy --save-rstd /dev/full"_w, {}, "/dev/full"},
  };
  for (const std::string input : {"x.npy", "big.npy"}) {
    for (const Case& c : cases) {
      CAPTURE(input, c.options);
      CHECK(fault_of(at.command(Words{input} + c.options).to(c.out),
                     {c.name + ": No space left on device"}) == "");
      CHECK(at.files() == Words{"big.npy", "x.npy", "y.npy"});
      CHECK(difference(at.read("y.npy"), "old") == "");
    }
  }
}

TEST_CASE("a run that fails leaves the old output and no temporary file") {
  struct Case {
    Words options;
    std::string input;
  };
  const std::vector<Case> cases{
      {{}, kRow.substr(0, kRow.size() - 1)},  // found when the output is open already
      {{}, kRow + "x"},
      {{}, big() + "x"},
      {{}, "[[1,2],[3]]"},
      {"--weight [1,2,3]"_w, kRow},
      {"--ddof 2"_w, kRow},
      {"--save-mean no/m.npy"_w, kRow},
  };
  for (const Case& c : cases) {
    CAPTURE(c.options, c.input.substr(0, 20));
    const OldOutput at;
    CHECK(at.fault("-o y.npy"_w + c.options, {}, pipe_of(c.input)) == "");
    at.check_untouched();
  }
}

TEST_CASE("an output keeps its permissions, a new one gets the usual ones") {
  const OldOutput at;
  const auto mode = [&](const char* name) {
    struct stat status {};
    REQUIRE(::stat((at / name).c_str(), &status) == 0);
    return status.st_mode & 07777;
  };
  REQUIRE(::chmod((at / "y.npy").c_str(), 0604) == 0);
  const mode_t before = ::umask(027);
  CHECK(at.output("x.npy -o y.npy --save-mean m.npy"_w) == "");
  ::umask(before);
  CHECK(mode("y.npy") == 0604);
  CHECK(mode("m.npy") == 0640);
}

TEST_CASE("an output that is a symbolic link is followed") {
  const OldOutput at;
  fs::create_directory(at / "far");
  at.write("far/real.npy", "old");
  fs::create_symlink("far/real.npy", at / "link.npy");
  CHECK(at.output("x.npy --eps 0 -o link.npy"_w) == "");
  CHECK(fs::is_symlink(at / "link.npy"));
  CHECK(difference(at.read("far/real.npy"), kRowNormalized) == "");
  CHECK(list_directory(at / "far") == Words{"real.npy"});
}

TEST_CASE("a FIFO is written in place") {
  const OldOutput at;
  const std::string fifo = at / "fifo";
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  const int fd = ::open(fifo.c_str(), O_RDWR | O_NONBLOCK);
  REQUIRE(fd >= 0);
  CHECK(at.output("x.npy --eps 0 -o fifo"_w) == "");
  std::string got(4096, '\0');
  const ssize_t count = ::read(fd, got.data(), got.size());
  ::close(fd);
  got.resize(count < 0 ? 0 : static_cast<std::size_t>(count));
  CHECK(got == kRowNormalized);
  CHECK(fs::is_fifo(fifo));
}

TEST_CASE("a terminal gets text, and binary only if asked") {
  const OldOutput at;
  const std::string text = "tensor([[-1.,  1.],\n        [-1.,  1.]])\n";
  const auto on_terminal = [&](const Words& options) {
    return at.command("x.npy --eps 0"_w + options).to(terminal());
  };
  CHECK(output_of(on_terminal({})) == text);
  CHECK(output_of(on_terminal("--to text"_w)) == text);
  CHECK(output_of(on_terminal("--to json"_w)) == "[[-1.0,1.0],[-1.0,1.0]]\n");
  CHECK(difference(output_of(on_terminal("--to npy"_w)), kRowNormalized) == "");
  CHECK(output_of(on_terminal("-o /dev/stdout"_w)) == text);
  CHECK(output_of(at.command("--eps 0"_w, pipe_of("[1,3]")).to(terminal())) ==
        "tensor([-1.,  1.], dtype=torch.float64)\n");
  at.check_untouched();
  CHECK(fault_of(on_terminal("-o y.npy --save-mean /dev/stdout"_w),
                 {"/dev/stdout", "binary", "terminal"}) == "");
  at.check_untouched();
  CHECK(output_of(on_terminal("-o y.npy"_w)) == "");
  CHECK(difference(at.read("y.npy"), kRowNormalized) == "");
}

TEST_CASE("closed standard streams are no place for other files") {
  const OldOutput at;
  CHECK(at.fault("-o y.npy"_w, {"standard input"}, closed()) == "");
  at.check_untouched();
  CHECK(fault_of(at.command("--save-mean y.npy"_w, pipe_of(kRow)).to(closed()),
                 {"standard output"}) == "");
  at.check_untouched();
}

TEST_CASE("text of every element of a long tensor has the numbers of the tensor", "[cli]") {
  const Workplace directory;
  const auto run = [&](Words arguments) { return directory.output(std::move(arguments)); };
  directory.write("big.npy", big());
  for (const std::string axes : {"1", "0", "0,1"}) {
    CAPTURE(axes);
    run({"big.npy", "--axes", axes, "-o", "y.npy"});
    run({"big.npy", "--axes", axes, "-o", "y.txt"});
    const std::string text = directory.read("y.txt");
    CHECK(difference(run("show y.npy --threshold 500000"_w), text) == "");
    const std::string elements = directory.read("y.npy").substr(128);
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
  const Workplace directory;
  const std::string elements(4 * 300'000, '\0');
  directory.write("x.npy", npy("<f4", {1, 300'000}, elements));
  directory.write("column.npy", npy("<f4", {300'000, 1}, elements));
  const auto run = [&](Words arguments) { directory.output(std::move(arguments)); };
  run("grad x.npy --dy x.npy --dweight dw.npy"_w);
  run("grad x.npy --dy x.npy --dweight dw.txt"_w);
  run("column.npy -o y.npy --save-mean mean.txt"_w);
  const std::string zeros = directory.read("dw.txt");
  CHECK(std::count(zeros.begin(), zeros.end(), '0') == 300'000);
  CHECK(difference(zeros.substr(0, 16), "tensor([0., 0., ") == "");
  const std::string mean = directory.read("mean.txt");
  CHECK(std::count(mean.begin(), mean.end(), '0') == 300'000);
  CHECK(mean.ends_with("dtype=torch.float64)\n"));
}

TEST_CASE("an ONNX tensor goes into a pipe as .npy, or as .safetensors where .npy lacks its dtype",
          "[onnx]") {
  const std::string floats = output_of({data_file("onnx/raw_float32.pb")});
  CHECK(floats.starts_with("\x93NUMPY"));
  CHECK(floats == output_of({data_file("onnx/raw_float32.npy")}));
  const std::string bfloats = output_of({data_file("onnx/raw_bfloat16.pb")});
  CHECK(bfloats.find(R"("dtype":"BF16")") != std::string::npos);
}
