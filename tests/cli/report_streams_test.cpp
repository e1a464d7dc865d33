#include "support/commands.hpp"

// stats, softmax, show and compare where streams end early, are full, are closed or very long.
// (What compare does with its exit status is in compare_test.cpp.)

namespace {

using namespace support;

// Commands for x.npy whose output is longer than a pipe holds.
const std::vector<Words> kLong{
    "stats --all"_w,
    "stats --json"_w,
    "stats --csv --softmax"_w,
    {"softmax"},
    "softmax --to json"_w,
    "softmax --to text --threshold 1000000"_w,
    "show --threshold 1000000"_w,
    "show --threshold 1000000 --header"_w,
};
const std::vector<Words> kShort{{"stats"}, "stats --histogram"_w, {"show"}};

struct StreamsFolder : Workplace {
  StreamsFolder() { write("x.npy", waves({3000, 20})); }
  Command command(Words words, const std::string& input = "x.npy", Stream in = {}) const {
    words.insert(words.begin() + 1, input);
    return Workplace::command(words, std::move(in));
  }
};

}  // namespace

TEST_CASE("a reader of any report may leave early", "[many]") {
  const StreamsFolder at;
  for (const Words& words : kLong) {
    CAPTURE(words);
    const std::string all = output_of(at.command(words));
    REQUIRE(all.size() > 100'000);
    for (const std::size_t limit : {0U, 1U, 70'000U}) {
      const std::string read = output_of(at.command(words).to(pipe_until(limit)));
      CHECK(difference(read, all.substr(0, limit)) == "");
    }
  }
}

TEST_CASE("a report that cannot be written is an error of one line", "[many]") {
  const StreamsFolder at;
  std::vector<Words> all = kLong;
  all.insert(all.end(), kShort.begin(), kShort.end());
  for (const Words& words : all) {
    CAPTURE(words);
    const Command command = at.command(words);
    CHECK(fault_of(command.to(file("/dev/full")), {"standard output: No space left on device"}) ==
          "");
    CHECK(fault_of(command.to(closed()), {"standard output"}) == "");
  }
}

TEST_CASE("a closed standard input is an error, and no place for another file") {
  const StreamsFolder at;
  for (const Words& words : {Words{"stats"}, {"softmax"}, {"show"}, "compare x.npy"_w}) {
    CAPTURE(words);
    CHECK(fault_of(at.command(words, "-", closed()), {"standard input"}) == "");
    CHECK(output_of(at.command(words, "x.npy", closed())) == output_of(at.command(words)));
  }
}

TEST_CASE("without INPUT at a terminal every command prints its short help") {
  const auto help_of = [](const Words& words) {
    CAPTURE(words);
    const Outcome outcome = run(words, terminal());
    CHECK(outcome.status == 2);
    CHECK(outcome.out == "");
    CHECK(!contains(outcome.err, "lnorm: "));
    return outcome.err;
  };
  for (const Words& words : {Words{}, {"apply"}, "--eps 0"_w}) {
    CHECK(contains(help_of(words), "Usage: lnorm"));
  }
  for (const std::string name : {"stats", "softmax", "show"}) {
    const std::string help = help_of({name});
    CHECK(contains(help, "Usage: lnorm " + name + " [INPUT...]"));
    CHECK(contains(help, "Examples:"));
  }
  // The program alone lists the commands.
  for (const std::string command :
       {"apply", "stats", "compare", "softmax", "grad", "explain", "report", "show"}) {
    CHECK(contains(help_of({}), "\n  " + command + "  "));
  }
}

TEST_CASE("a report on rows that do not fit where temporary files go is refused") {
  const Workplace directory;
  write_sparse_npy(directory / "x.npy", {1'100'000, 1});
  Command command = directory.command("stats x.npy"_w);
  command.environment = {{"TMPDIR", directory / "no"}};
  CHECK(fault_of(command, {directory / "no", "No such file"}) == "");
  command.environment = {{"TMPDIR", directory.path().string()}};
  CHECK(run(command).status == 0);
  CHECK(directory.files() == Words{"x.npy"});
}

TEST_CASE("the memory of the other commands does not grow with the tensor either", "[many]") {
  const Workplace at;
  // Rows enough, in the smaller one already, that stats keeps them on disk.
  write_sparse_npy(at / "small.npy", {1'100'000, 4});  // 17 MiB
  write_sparse_npy(at / "large.npy", {2'200'000, 4});  // 34 MiB
  for (const Words& words : {"stats --softmax --histogram"_w,
                             "stats --csv"_w,
                             "softmax -o /dev/null"_w,
                             {"compare"},
                             {"show"}}) {
    CAPTURE(words);
    const auto peak_kib = [&](const std::string& name) {
      Command command{.arguments = words, .out = file("/dev/null")};
      command.arguments.push_back(at / name);
      if (words[0] == "compare") command.arguments.push_back(at / name);
      return peak_kib_of(command);
    };
    // Of what an allocator keeps there is now more, now less.
    check_memory(peak_kib("small.npy"), peak_kib("large.npy"), 8 * 1024);
  }
}
