// What goes wrong on one rank ends the job: one line, the old output as it was, nothing left behind.

#include "mpi/job.hpp"
#include "support/catch.hpp"

namespace {

using namespace support;

std::string tensor(std::int64_t rows) {
  std::vector<float> values(static_cast<std::size_t>(rows) * 768);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 97);
  return npy_of<float>({rows, 768}, values);
}

// A folder with an input and an old output, and one for each of the ranks 0 to 2.
struct JobFolder : TempDir {
  JobFolder() {
    write("x.npy", tensor(kRows));
    write("y.npy", "old");
    std::filesystem::create_directory(*this / "own");
  }

  static constexpr std::int64_t kRows = 3000;

  Outcome run(const Words& arguments, const std::string& before = {}, int ranks = 3) const {
    return support::run(Job{ranks, arguments, path().string(), before});
  }

  // Empty if the old output is there, and nothing new.
  std::string damage() const {
    if (read("y.npy") != "old") return "the old output has changed";
    for (const std::string& name : files()) {
      if (name != "x.npy" && name != "y.npy" && name != "own" && name != "seen") return name;
    }
    return "";
  }
};

void check_refused(const JobFolder& folder, const Outcome& outcome, const Words& words) {
  INFO(outcome.err);
  CHECK(outcome.status == 2);
  CHECK(outcome.out == "");
  const Words lines = lines_of_lnorm(outcome);
  REQUIRE(!lines.empty());
  for (const std::string& word : words) CHECK(contains(lines.front(), word));
  CHECK((lines.size() == 1 || (lines.size() == 2 && lines.back().starts_with("hint: "))));
  CHECK(folder.damage() == "");
}

}  // namespace

TEST_CASE("what all ranks would say is said once", "[mpi]") {
  const JobFolder folder;
  check_refused(folder, folder.run("no.npy -o y.npy"_w), {"lnorm: no.npy: No such file"});
  check_refused(folder, folder.run("x.npy -o no/y.npy"_w), {"lnorm: cannot create -o no/y"});
  check_refused(folder, folder.run("x.npy --epsilon 1"_w), {"no option --epsilon"});
  check_refused(folder, folder.run("x.npy --axes 7 -o y.npy"_w), {"axis 7"});
}

TEST_CASE("ranks take no streams", "[mpi]") {
  const JobFolder folder;
  check_refused(folder, folder.run("- -o y.npy"_w), {"standard input", "expected a file"});
  check_refused(folder, folder.run({"x.npy"}), {"standard output", "expected a file"});
  check_refused(folder, folder.run("x.npy --dtype bfloat16"_w), {"write safetensors"});
  check_refused(folder, folder.run("x.npy -o /dev/null"_w), {"/dev/null", "expected a file"});
  check_refused(folder, folder.run("compare x.npy -"_w), {"standard input"});
}

TEST_CASE("an input that one rank sees otherwise is named with the rank", "[mpi]") {
  const JobFolder folder;
  const std::string own = "if [ $rank = 1 ]; then cd own; fi";
  const Words apply{"x.npy", "-o", folder / "y.npy"};
  check_refused(folder, folder.run(apply, own), {"x.npy: No such file", "(rank 1 on "});
  folder.write("own/x.npy", tensor(JobFolder::kRows - 1));
  check_refused(folder, folder.run(apply, own),
                {"x.npy", "(2999, 768)", "(3000, 768)", "(rank 1 on "});
  folder.write("own/x.npy", tensor(JobFolder::kRows).substr(0, 1'000'000));
  check_refused(folder, folder.run(apply, own), {"x.npy", "cut off", "(rank 1 on "});
  check_refused(folder, folder.run("stats x.npy"_w, own), {"x.npy", "cut off", "(rank 1 on "});
}

TEST_CASE("ranks that see different sets, or get different words, are refused", "[mpi]") {
  const JobFolder folder;
  std::filesystem::create_directories(folder / "own/d");
  for (const std::string name : {"a", "b"}) {
    folder.write("own/d/" + name + ".npy", tensor(2));
  }
  const auto refused = [&](const Words& arguments, const std::string& change, const Words& words) {
    check_refused(folder,
                  folder.run(arguments,
                             "rm -rf own/$rank && mkdir own/$rank && cp -r own/d own/$rank && "
                             "cd own/$rank && if [ $rank = 1 ]; then " +
                                 change + "; fi"),
                  words);
  };
  const Words apply{"d:*", "-o", folder / "y.safetensors"};
  refused(apply, "rm d/b.npy", {"d: has 1 tensor, expected 2", "(rank 1 on "});
  refused(apply, "cp d/b.npy d/c.npy", {"d: has 3 tensors, expected 2"});
  refused(apply, "mv d/b.npy d/c.npy", {"c: float32", "expected", "b: float32"});
  refused(apply, "truncate -s 200 d/a.npy", {"a.npy", "cut off"});
  refused(apply + Words{"--keep-going"}, "truncate -s 200 d/a.npy", {"(rank 1 on "});
  refused("stats d --keep-going"_w, "truncate -s 200 d/a.npy", {"(rank 1 on "});
  refused("compare d ../d --keep-going"_w, "rm d/b.npy", {"pair", "(rank 1 on "});
  refused(apply, "set -- \"$@\" --eps 1", {"the command line: has", "(rank 1 on "});
}

TEST_CASE("a rank that has no room for its part", "[mpi]") {
  const JobFolder folder;
  folder.write("x.npy", tensor(20'000));
  // 32 MiB, which leave MPI its own files: the rank writes from 41 MB on.
  check_refused(folder,
                folder.run("x.npy -o y.npy"_w, "if [ $rank = 2 ]; then ulimit -f 65536; fi"),
                {"-o y.npy: File too large", "(rank 2 on "});
}

TEST_CASE("a rank that is killed ends the job", "[mpi]") {
  const JobFolder folder;
  for (const char rank : {'0', '2'}) {
    // Once there is a temporary file, which "seen" shows.
    const std::string kill =
        std::string("if [ $rank = ") + rank +
        " ]; then (until ls -A | grep -q '^[.]lnorm-'; do sleep 0.05; done; echo > seen;"
        " kill -9 $$) & fi";
    const Outcome outcome = folder.run("x.npy --kernel reference -o y.npy"_w, kill);
    INFO(outcome.err);
    CHECK(outcome.status != 0);
    CHECK(folder.read("seen") == "\n");
    CHECK(folder.damage() == "");
  }
}
