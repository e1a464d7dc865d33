#include <algorithm>
#include <regex>

#include "support/commands.hpp"

// What is for the eyes alone: colour, width, headers, progress.

namespace {

using namespace support;
using Environment = std::vector<std::pair<std::string, std::string>>;

const Environment kXterm{{"TERM", "xterm"}, {"NO_COLOR", ""}, {"LC_ALL", "C.UTF-8"}};

Environment with(const std::string& name, const std::string& value) {
  Environment result = kXterm;
  result.emplace_back(name, value);
  return result;
}

Outcome run_in_data(const Words& arguments, const Stream& out, const Environment& environment) {
  return run({.arguments = arguments,
              .out = out,
              .directory = LNORM_DATA_DIR,
              .environment = environment});
}

bool has_escapes(const std::string& text) { return contains(text, "\x1b"); }

std::string without_colors(const std::string& text) {
  return std::regex_replace(text, std::regex("\x1b\\[[0-9]*m"), "");
}

const std::vector<Words> kColored{
    "stats sample.npy"_w,
    "compare sample.npy sample.npy --linewidth 80"_w,
    "compare reports/y.json reports/ref.json --linewidth 80"_w,
    "compare sample.npy reports/ref.json --rtol 0 --linewidth 80"_w,
    "show sample.npy --header"_w,
};

// ---- Work that takes longer than a second: the input comes from a pipe in two halves.

class SlowPipe : Workplace {
 public:
  SlowPipe() { write("x.npy", waves({1000, 500})); }
  // Redirections are the shell's.
  Outcome run(const Words& arguments, const Stream& out, const Stream& err,
              const std::string& redirections = "") const {
    return run_script("tail -c +1000001 x.npy", arguments, out, err, redirections);
  }
  // The second half is cut off, after a pause in which the rows before it are written.
  Outcome run_cut(const Words& arguments, const Stream& out, const Stream& err) const {
    return run_script("head -c 600000 x.npy; sleep 0.5", arguments, out, err, "");
  }
  std::string result_without_pause(const Words& arguments) const {
    const std::string script = R"(cat x.npy | "$0" "$@")";
    return support::run(command(script, arguments)).out;
  }

 private:
  Command command(const std::string& script, const Words& arguments) const {
    return {.arguments = Words{"-c", script, LNORM_BINARY} + arguments,
            .directory = path().string(),
            .environment = kXterm,
            .program = "/bin/sh"};
  }
  Outcome run_script(const std::string& second_half, const Words& arguments, const Stream& out,
                     const Stream& err, const std::string& redirections) const {
    Command slow = command(
        "{ head -c 1000000 x.npy; sleep 2; " + second_half + R"(; } | "$0" "$@" )" + redirections,
        arguments);
    slow.out = out;
    slow.err = err;
    return support::run(slow);
  }
};

// One or more lines in one place, and then nothing there.
const std::string kProgress =
    "(\r\x1b\\[K(standard input|x\\.npy): [0-9]{1,3}%, [0-9]+ s left)+\r\x1b\\[K";

}  // namespace

TEST_CASE("reports are coloured on a terminal, unless that is not wanted") {
  for (const Words& command : kColored) {
    CAPTURE(command);
    const Outcome plain = run_in_data(command, {}, kXterm);
    CHECK(!has_escapes(plain.out));
    const auto check = [&](const Words& options, const Stream& out, const Environment& environment,
                           bool colored) {
      CAPTURE(options);
      const Outcome outcome = run_in_data(command + options, out, environment);
      CHECK(outcome.status == plain.status);
      CHECK(outcome.err == "");
      CHECK(has_escapes(outcome.out) == colored);
      CHECK(without_colors(outcome.out) == plain.out);
    };
    check({}, terminal(), kXterm, true);
    check("--color auto"_w, terminal(), kXterm, true);
    check("--color never"_w, terminal(), kXterm, false);
    check({}, terminal(), with("NO_COLOR", "1"), false);
    check("--color auto"_w, terminal(), with("NO_COLOR", "1"), false);
    check("--color always"_w, terminal(), with("NO_COLOR", "1"), true);
    check({}, terminal(), with("TERM", "dumb"), false);
    check("--color always"_w, {}, kXterm, true);
    check("--color auto"_w, {}, kXterm, false);
  }
}

TEST_CASE("what programs read is never coloured") {
  for (const Words& command :
       std::vector<Words>{"stats sample.npy --json"_w, "stats sample.npy --csv"_w,
                          "compare sample.npy reports/y.json --json"_w,
                          "compare reports/y.json reports/ref.json --json"_w}) {
    CAPTURE(command);
    const Outcome outcome = run_in_data(command + "--color always"_w, terminal(), kXterm);
    CHECK(!has_escapes(outcome.out));
    CHECK(outcome.out == run_in_data(command, {}, kXterm).out);
  }
}

TEST_CASE("show has a header on a terminal") {
  const std::string in_pipe = run_in_data("show sample.npy"_w, {}, kXterm).out;
  const std::string on_terminal =
      without_colors(run_in_data("show sample.npy"_w, terminal(), kXterm).out);
  CHECK(in_pipe.starts_with("tensor([[["));
  CHECK(on_terminal == "sample.npy: float32, shape (2, 3, 4)\n" + in_pipe);
}

TEST_CASE("compare is as wide as it needs, but on a terminal") {
  const Words compare = "compare kernel/y.npy kernel/dx.npy --color never"_w;
  const auto said = [&](const Words& more, const Stream& out = {},
                        const Environment& environment = kXterm) {
    return run_in_data(compare + more, out, environment).out;
  };
  const std::string in_pipe = said({});
  CHECK(widest_line(in_pipe) > 80);
  CHECK(contains(in_pipe, "<= 65536 in all\n"));  // not folded
  const Workplace directory;
  CHECK(run({.arguments = compare + "--worst 40"_w,
             .out = file(directory / "report.txt"),
             .directory = LNORM_DATA_DIR,
             .environment = kXterm})
            .status == 1);
  CHECK(directory.read("report.txt") == said("--worst 40"_w));
  for (const int columns : {30, 60, 70}) {
    CAPTURE(columns);
    const std::string on_terminal = said({}, terminal(columns));
    CHECK(on_terminal != in_pipe);
    CHECK(said({"--linewidth", std::to_string(columns)}) == on_terminal);
    CHECK(said({}, terminal(200), with("COLUMNS", std::to_string(columns))) == on_terminal);
  }
  CHECK(said({}, {}, with("COLUMNS", "30")) == in_pipe);
  for (const std::string nonsense : {"", "0", "-5", "x", "40x"}) {
    CHECK(said({}, terminal(60), with("COLUMNS", nonsense)) == said({}, terminal(60)));
  }
  // Bars fill 80 columns where a line may have any length.
  const auto bars = [&](const Words& more) {
    const std::string text = said("--worst 0 --histogram"_w + more);
    return widest_line(text.substr(text.find("distances in ulp")));
  };
  CHECK(bars({}) == 80);
  CHECK(bars("--linewidth 50"_w) == 50);
  CHECK(widest_line(said("--linewidth 50"_w)) <= 50);
  CHECK(widest_line(said("--linewidth 30 --worst 0"_w)) <= 30);
}

TEST_CASE("the histogram is as wide as the terminal, in what its locale can show") {
  const auto drawn = [&](const Stream& out, const std::string& locale) {
    const std::string report =
        run_in_data("stats corpus/good/medium_64x33_f4.npy --histogram --color never"_w, out,
                    with("LC_ALL", locale))
            .out;
    return report.substr(report.find("elements of"));
  };
  for (const int columns : {20, 40, 79, 200}) {
    CAPTURE(columns);
    CHECK(widest_line(drawn(terminal(columns), "C.UTF-8")) == columns);
  }
  CHECK(drawn(terminal(), "C.UTF-8") == drawn({}, "C.UTF-8"));  // a terminal of unknown width
  CHECK(drawn(terminal(80), "C.UTF-8") == drawn({}, "C.UTF-8"));
  const std::string ascii = drawn({}, "C");
  CHECK(std::all_of(ascii.begin(), ascii.end(), [](char c) { return c > 0; }));
  CHECK(contains(ascii, "#"));
}

TEST_CASE("work of more than a second is followed on a terminal, by a line that goes away") {
  const SlowPipe pipe;
  for (const Words& command : std::vector<Words>{"apply -o /dev/null"_w,
                                                 {"stats"},
                                                 "softmax -o /dev/null"_w,
                                                 {"show"},
                                                 "compare - x.npy"_w}) {
    CAPTURE(command);
    const Outcome outcome = pipe.run(command, {}, terminal());
    CAPTURE(outcome.err);
    CHECK(outcome.status == 0);
    CHECK(std::regex_match(outcome.err, std::regex(kProgress)));
    CHECK(!has_escapes(outcome.out));
  }
}

TEST_CASE("progress is shown where it is asked for, and nowhere else") {
  const SlowPipe pipe;
  const auto shown = [&](const Words& options, const Stream& err) {
    return pipe.run("apply -o /dev/null"_w + options, {}, err).err;
  };
  CHECK(std::regex_match(shown("--progress always"_w, {}), std::regex(kProgress)));
  CHECK(shown({}, {}) == "");
  CHECK(shown("--progress auto"_w, {}) == "");
  CHECK(shown("--progress never"_w, terminal()) == "");
}

TEST_CASE("quick work shows no progress") {
  for (const Words& command :
       std::vector<Words>{"apply sample.npy"_w, "stats sample.npy"_w, "softmax sample.npy"_w,
                          "show sample.npy"_w, "compare sample.npy sample.npy"_w}) {
    CAPTURE(command);
    CHECK(run_in_data(command + "--progress always"_w, {}, kXterm).err == "");
  }
}

TEST_CASE("progress leaves nothing in a result on the same terminal") {
  const SlowPipe pipe;
  for (const Words& command :
       std::vector<Words>{"apply --to text"_w, "apply --to json"_w, "softmax --to text"_w,
                          "stats --color never"_w, "compare - x.npy --color never"_w}) {
    CAPTURE(command);
    const std::string seen = pipe.run(command, terminal(), {}, "2>&1").out;
    const std::string expected = pipe.result_without_pause(command);
    REQUIRE(seen.size() >= expected.size());
    CHECK(difference(seen.substr(seen.size() - expected.size()), expected) == "");
    const std::string before = seen.substr(0, seen.size() - expected.size());
    CHECK((before.empty() || std::regex_match(before, std::regex(kProgress))));
  }
}

TEST_CASE("an error stands where progress was") {
  const Outcome outcome = SlowPipe().run_cut({"apply"}, {}, terminal());
  CAPTURE(outcome.err);
  CHECK(outcome.status == 2);
  CHECK(std::regex_match(outcome.err, std::regex(kProgress + "lnorm: [^\n]*cut off[^\n]*\n")));
}
