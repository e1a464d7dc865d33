#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <functional>
#include <map>
#include <regex>
#include <set>
#include <tuple>

#include "support/commands.hpp"
#include "support/zip.hpp"

// What the program does where the system fails it: every one of its system calls in turn, by the library of
// faults/interpose.cpp, which has the grammar of the plans.

namespace {

using namespace support;
namespace fs = std::filesystem;
using Files = std::map<std::string, std::string>;

struct Scenario {
  Words arguments;
  std::string in = {};  // the file of the workplace that comes through a pipe
  int status = 0;       // where nothing fails
  std::size_t outputs = 1;
};

const Scenario kOneThread{"x.npy -o y.npy --threads 1"_w};
const Scenario kTwoThreads{"x.npy -o y.npy --threads 2"_w};

// Each makes the program do something that the others do not.
const std::vector<Scenario> kScenarios{
    kOneThread,
    kTwoThreads,
    {"--threads 1"_w, "x.npy"},
    {"small.json --to text --weight w.npy --bias b.json:b"_w},
    {"x.npy -o y.npy --save-mean m.npy --save-rstd s.json"_w, {}, 0, 3},
    {"-o y.npy --bias 1"_w, "long.npy"},
    {"compare x.npy - --json"_w, "x.npy"},
    {"x.npz:x -o new.safetensors --weight x.safetensors:w"_w},
    {"--axes 0"_w, "tall.npy"},
    {"x.jsonl -o new.jsonl"_w},
    {"x.safetensors:* -o new/"_w, {}, 0, 2},
    {"grad x.npy --dy - -o y.npy --dbias m.npy"_w, "x.npy", 0, 2},
#ifndef LNORM_SANITIZED  // and slow to start
    {"-o y.npy"_w, "x.npy"},
    {{"x.npy"}},
    {"x.npy -o x.npy"_w},
    {"small.npy --to json -o new.json"_w},
    {"--save-mean m.npy"_w, "x.npy", 0, 2},
    {"long.npy -o y.npy"_w},
    {"softmax x.npy -o y.npy"_w},
    {"stats small.npy --csv"_w},
    {"compare x.npy z.npy"_w, {}, 1},
    {"show x.npy --threshold 10000"_w},
    {"show x.npz"_w},
    {"-:x --bias x.npz:w"_w, "x.safetensors"},
    {"tall.npy --axes 0 -o y.npy --save-mean m.npy"_w, {}, 0, 2},
    {"fortran.npy -o y.npy"_w},
    {"compare fortran.npy -"_w, "fortran.npy"},
    {"x.safetensors:* -o old"_w, {}, 0, 2},
    {"x.npz:* -o new.npz"_w},
    {"-:* -o new.safetensors --save-mean m.json"_w, "x.safetensors", 0, 2},
    {"stats x.pt"_w},
    {"compare old x.npz --common"_w},
    {"x.npz:* --weight x.safetensors:{} --to json"_w},
    {"grad - --dy small.npy --weight 2"_w, "small.npy"},
    {"grad long.npy --dy - --dx y.npy --dweight m.npy"_w, "long.npy", 0, 2},
    {"grad fortran.npy --dy ordered.npy -o y.npy"_w},
#endif
};

const std::string kManyRows = "rows.npy";
const Scenario kSpool{{"stats", kManyRows}};

// A run without faults.
struct Expected {
  Outcome outcome;
  Files files;
};

class FaultFolder : public Workplace {
 public:
  FaultFolder() {
    files_["x.npy"] = waves({700, 500});  // three blocks
    files_["z.npy"] = std::string(files_["x.npy"]).replace(1000, 4, "abcd");
    files_["small.npy"] = waves({150, 100});
    files_["small.json"] = "[[1, 2.5, 4], [8, 16, 33]]";
    files_["w.npy"] = waves({3});
    files_["b.json"] = "{\"b\": [1, 2, 3]}";
    files_["long.npy"] = waves({1, 300'000});  // more than is held
    const std::string row = bytes_of<float>({1, 2, 4});
    files_["x.npz"] = zip({{"x.npy", npy("<f4", {3}, row)}, {"w.npy", npy("<f4", {3}, row), true}});
    files_["x.safetensors"] =
        safetensors(R"({"w":{"dtype":"F32","shape":[3],"data_offsets":[0,12]},)"
                    R"("x":{"dtype":"F32","shape":[3],"data_offsets":[12,24]}})",
                    row + row);
    files_["tall.npy"] = waves({20'000, 70});  // columns that go through in parts
    files_["fortran.npy"] = waves({20, 30, 50});
    files_["ordered.npy"] = files_["fortran.npy"];
    files_["fortran.npy"] = in_fortran_order(files_["fortran.npy"]);
    files_["x.jsonl"] = "[1, 2, 4]\n[[1, 3], [2, 5]]\n";
    files_["y.npy"] = files_["m.npy"] = files_["s.json"] = files_["m.json"] = "old";
    files_["x.pt"] = read_file(data_file("torch/shared.pt"));
    files_["old/x.npy"] = npy("<f4", {3}, row);
    fs::create_directory(*this / "tmp");
    fs::create_directory(*this / "old");
    restore(files_);
  }

  void add(const std::string& name, std::string bytes) {
    files_[name] = std::move(bytes);
    restore({{name, ""}});
  }

  // Under a plan; what it leaves is there until take().
  Outcome run(const Scenario& scenario, const std::string& plan) {
    fs::remove(hit_ / "hit");
    return support::run({.arguments = scenario.arguments,
                         .in = pipe_of(scenario.in.empty() ? "" : files_.at(scenario.in)),
                         .directory = path().string(),
                         .environment = {{"LD_PRELOAD", LNORM_FAULTS_LIBRARY},
                                         {"LNORM_FAULTS", plan},
                                         {"LNORM_FAULTS_HIT", hit_ / "hit"},
                                         {"TMPDIR", *this / "tmp"}}});
  }

  // Whether the last run came to a call of the plan.
  bool was_hit() const { return fs::exists(hit_ / "hit"); }

  // Puts back the files that differ from those at the beginning, and returns them. A file that was not touched is not read.
  Files take() {
    CHECK(list_directory(*this / "tmp").empty());
    Files changed;
    std::set<std::string> untouched;
    for (const auto& entry : fs::recursive_directory_iterator(path())) {
      const std::string name = entry.path().string().substr(path().string().size() + 1);
      if (name == "tmp" || name == "old") continue;
      const auto stamp = stamps_.find(name);
      if (stamp != stamps_.end() && stamp->second == stamp_of(name)) {
        untouched.insert(name);
      } else {
        changed[name] = entry.is_directory() ? "a folder" : read_file(entry.path());
      }
    }
    for (const auto& [name, bytes] : files_) {
      if (!untouched.contains(name) && changed[name] == bytes) changed.erase(name);
    }
    for (const auto& file : changed) fs::remove_all(*this / file.first);
    if (!changed.empty()) restore(changed);
    return changed;
  }

  const Expected& expected(const Scenario& scenario) {
    const auto [place, is_new] = expected_.try_emplace({scenario.arguments, scenario.in});
    Expected& expected = place->second;
    if (is_new) {
      expected.outcome = run(scenario, "");
      expected.files = take();
      REQUIRE(expected.outcome.err == "");
      REQUIRE(expected.outcome.status == scenario.status);
    }
    return expected;
  }

 private:
  // Every change of a file changes one of these.
  using Stamp = std::tuple<ino_t, off_t, time_t, long>;
  Stamp stamp_of(const std::string& name) const {
    struct stat info {};
    REQUIRE(::stat((*this / name).c_str(), &info) == 0);
    return {info.st_ino, info.st_size, info.st_ctim.tv_sec, info.st_ctim.tv_nsec};
  }

  void restore(const Files& files) {
    for (const auto& file : files) {
      const auto before = files_.find(file.first);
      if (before == files_.end()) continue;
      write_file(*this / file.first, before->second);
      stamps_[file.first] = stamp_of(file.first);
    }
  }

  Files files_;
  std::map<std::string, Stamp> stamps_;
  std::map<std::pair<Words, std::string>, Expected> expected_;
  TempDir hit_;
};

void check_done(const Outcome& outcome, const Files& files, const Expected& expected) {
  CHECK(outcome.status == expected.outcome.status);
  CHECK(outcome.err == "");
  CHECK(difference(outcome.out, expected.outcome.out) == "");
  CHECK((files == expected.files));
}

// Outputs that are all there, but not all of them.
bool are_some_of(const Files& files, const Expected& expected) {
  return std::all_of(files.begin(), files.end(), [&](const auto& file) {
    const auto whole = expected.files.find(file.first);
    return whole != expected.files.end() && whole->second == file.second;
  });
}

using Check = std::function<void(const Outcome&, const Files&, const Expected&)>;

// Runs the scenario with the rule "call#N=what" for N = 1, 2, 3, ... until there is no Nth call; checks all
// other runs by check. From the kOneByOne-th call on, where they are of blocks alike, some are passed over.
// Returns how many runs were hit.
#ifdef LNORM_SANITIZED  // and slow to start
constexpr int kOneByOne = 1;
#else
constexpr int kOneByOne = 4;
#endif
int walk(FaultFolder& at, const Scenario& scenario, const std::string& call,
         const std::string& what, const Check& check) {
  const Expected& expected = at.expected(scenario);
  int hits = 0;
  for (int n = 1;; n += 1 + n / kOneByOne) {
    const std::string plan = call + "#" + std::to_string(n) + "=" + what;
    CAPTURE(scenario.arguments, scenario.in, plan);
    const Outcome outcome = at.run(scenario, plan);
    CAPTURE(outcome.status, outcome.err);
    const Files files = at.take();
    if (!at.was_hit()) {
      check_done(outcome, files, expected);
      return hits;
    }
    ++hits;
    check(outcome, files, expected);
  }
}

// One line that has one of the names, perhaps behind the option that it stands for, and ends with the reason;
// nothing was changed.
Check fails(const Words& names, const std::string& reason) {
  return [=](Outcome outcome, const Files& files, const Expected& expected) {
    // What was written in place is a beginning of the result.
    CHECK(expected.outcome.out.starts_with(outcome.out));
    outcome.out.clear();
    CHECK(refusal_fault(outcome, {}) == "");
    static const std::regex option("^lnorm: (x.npz:x: )?((cannot (create|write) )?--?[a-z-]+ )?");
    const std::string place_and_reason =
        std::regex_replace(outcome.err, option, "", std::regex_constants::format_first_only);
    CHECK(std::any_of(names.begin(), names.end(), [&](const std::string& name) {
      return place_and_reason == name + ": " + reason + "\n";
    }));
    CHECK(files.empty());
  };
}

Words names_of_outputs(const FaultFolder& at) {
  return "y.npy x.npy m.npy s.json new.json new.jsonl new.safetensors new.npz m.json"_w +
         "new new/ old old/x.npy old/w.npy new/x.npy new/w.npy"_w +
         Words{"standard output", "a temporary file in " + (at / "tmp")};
}

Words names_of_inputs(const FaultFolder& at) {
  return "x.npy z.npy small.npy small.json w.npy b.json x.npz x.safetensors tall.npy"_w +
         "fortran.npy x.jsonl long.npy x.pt old old/x.npy ordered.npy"_w +
         Words{kManyRows, "standard input", "a temporary file in " + (at / "tmp")};
}

}  // namespace

TEST_CASE("a write that fails, whichever it is, is one clear line and leaves nothing behind") {
  FaultFolder at;
  for (const Scenario& scenario : kScenarios) {
    CAPTURE(scenario.arguments);
    CHECK(walk(at, scenario, "write", "ENOSPC",
               fails(names_of_outputs(at), "No space left on device")) > 0);
  }
  walk(at, kTwoThreads, "write", "EIO", fails(names_of_outputs(at), "Input/output error"));
}

TEST_CASE("a read that fails, whichever it is, is one clear line and leaves nothing behind") {
  FaultFolder at;
  for (const Scenario& scenario : kScenarios) {
    CAPTURE(scenario.arguments);
    CHECK(walk(at, scenario, "read", "EIO", fails(names_of_inputs(at), "Input/output error")) > 0);
  }
}

TEST_CASE("a file that cannot be opened, made, examined or given its permissions is named") {
  FaultFolder at;
  const Words names = names_of_outputs(at) + names_of_inputs(at);
  for (const Scenario& scenario : kScenarios) {
    walk(at, scenario, "open", "EMFILE", fails(names, "Too many open files"));
    walk(at, scenario, "mkostemp", "ENOSPC", fails(names, "No space left on device"));
    walk(at, scenario, "fstat", "EIO", fails(names, "Input/output error"));
    walk(at, scenario, "fchmod", "EPERM", fails(names, "Operation not permitted"));
  }
}

TEST_CASE("an output that cannot be closed or put in its place is named, and others are whole") {
  FaultFolder at;
  for (const Scenario& scenario : kScenarios) {
    const auto check = [&](const std::string& reason) -> Check {
      return [&, reason](Outcome outcome, Files files, const Expected& expected) {
        // Nothing is lost where a file that was only read cannot be closed.
        if (outcome.status == scenario.status) return check_done(outcome, files, expected);
        if (scenario.outputs > 1 && are_some_of(files, expected)) files.clear();
        fails(names_of_outputs(at), reason)(outcome, files, expected);
      };
    };
    walk(at, scenario, "close", "EIO", check("Input/output error"));
    walk(at, scenario, "rename", "EACCES", check("Permission denied"));
  }
  CHECK(refusal_fault(at.run({"x.npy -o y.npy"_w}, "close*=EIO"), {"y.npy: Input/output error"}) ==
        "");
  const Outcome to_pipe = at.run({{"small.json"}}, "close*=EIO");
  CHECK(to_pipe.status == 2);
  CHECK(to_pipe.err == "lnorm: standard output: Input/output error\n");
}

TEST_CASE("a reader that leaves at any write is no failure") {
  FaultFolder at;
  for (const Scenario& scenario : kScenarios) {
    const bool to_file = scenario.arguments.size() > 2 && scenario.arguments[1] == "-o";
    if (to_file || scenario.outputs > 1) continue;
    if (std::count(scenario.arguments.begin(), scenario.arguments.end(), "-o") > 0) continue;
    if (scenario.in == "tall.npy") continue;  // a temporary file has no reader that could leave
    walk(at, scenario, "write", "EPIPE",
         [&](const Outcome& outcome, const Files& files, const Expected& expected) {
           CHECK(outcome.status == scenario.status);
           CHECK(outcome.err == "");
           CHECK(expected.outcome.out.starts_with(outcome.out));
           CHECK(files.empty());
         });
  }
}

TEST_CASE("calls that are interrupted or do a part of their work are made again") {
  FaultFolder at;
  for (const Scenario& scenario : kScenarios) {
    const Expected& expected = at.expected(scenario);
    for (const std::string plan :
         {"read%2=EINTR,write%2=EINTR,open%2=EINTR,mkostemp%2=EINTR,close*=EINTR",
          "read*=half,write*=half", "read*=short:1021,write*=short:4093",
          "read%2=EINTR,write%2=EINTR,read*=short:509,write*=short:12007"}) {
      CAPTURE(scenario.arguments, plan);
      const Outcome outcome = at.run(scenario, plan);
      CHECK(at.was_hit());
      check_done(outcome, at.take(), expected);
    }
  }
}

TEST_CASE("bytes that come and go one by one are the same bytes") {
  FaultFolder at;
  at.add("tiny.npy", waves({7, 3}));
  for (const Scenario& scenario :
       std::vector<Scenario>{{"tiny.npy -o y.npy --save-rstd s.json"_w},
                             {"--to json"_w, "tiny.npy"},
                             {"small.json --weight w.npy --bias b.json:b"_w},
                             {"stats --json --softmax"_w, "small.json"},
                             {"softmax --to text"_w, "tiny.npy"},
                             {"compare tiny.npy -"_w, "tiny.npy"},
                             {"show tiny.npy"_w}}) {
    CAPTURE(scenario.arguments);
    const Expected& expected = at.expected(scenario);
    const Outcome outcome = at.run(scenario, "read*=short:1,write*=short:1");
    CHECK(at.was_hit());
    check_done(outcome, at.take(), expected);
  }
}

TEST_CASE("a signal at any call ends the run, which leaves the old output and no temporary file") {
  FaultFolder at;
  const auto ended_by = [](int signal) -> Check {
    return [signal](const Outcome& outcome, const Files& files, const Expected& expected) {
      CHECK(outcome.status == -signal);
      CHECK(outcome.err == "");
      CHECK(expected.outcome.out.starts_with(outcome.out));
      CHECK(are_some_of(files, expected));
      // Those beside the result are in their place when the result's turn comes.
      CHECK(files.size() < std::max<std::size_t>(1, expected.files.size()));
    };
  };
  for (const Scenario& scenario : kScenarios) {
    if (scenario.arguments[0] == "compare" || scenario.arguments[0] == "show") continue;
    for (const char* const call : {"read", "write", "mkostemp", "rename"}) {
      walk(at, scenario, call, "SIGTERM", ended_by(SIGTERM));
    }
  }
  walk(at, kTwoThreads, "write", "SIGINT", ended_by(SIGINT));
  walk(at, kTwoThreads, "read", "SIGHUP", ended_by(SIGHUP));
}

TEST_CASE("threads that cannot be created are done without") {
  FaultFolder at;
  const Scenario scenario{"x.npy -o y.npy --threads 4"_w};
  const Expected& expected = at.expected(scenario);
  std::vector<std::string> plans{"thread*=EAGAIN", "thread%2=EAGAIN"};
  // Whichever it is: another process may take the last one at any time.
  for (int n = 1; n < 8; ++n) plans.push_back("thread#" + std::to_string(n) + "=EAGAIN");
  int hits = 0;
  for (const std::string& plan : plans) {
    CAPTURE(plan);
    const Outcome outcome = at.run(scenario, plan);
    CAPTURE(outcome.status, outcome.err);
    hits += at.was_hit() ? 1 : 0;
    check_done(outcome, at.take(), expected);
  }
  CHECK(hits >= 4);
}

TEST_CASE("rows that wait in a temporary file are lost neither to faults nor to signals",
          "[many]") {
  FaultFolder at;
  at.add(kManyRows, waves({1'100'000, 1}));
  const Expected& expected = at.expected(kSpool);
  const std::string temporary = "a temporary file in " + (at / "tmp");
  const auto check = [&](const std::string& plan, const Check& check_run) {
    CAPTURE(plan);
    const Outcome outcome = at.run(kSpool, plan);
    CAPTURE(outcome.status, outcome.err);
    CHECK(at.was_hit());
    check_run(outcome, at.take(), expected);
  };
  check("write#1=ENOSPC", fails({temporary}, "No space left on device"));
  check("mkostemp*=ENOSPC,open#2=EOPNOTSUPP", fails({temporary}, "No space left on device"));
  check("read#1000=EIO", fails({temporary}, "Input/output error"));
  check("open#2=EOPNOTSUPP", check_done);
  check("read*=half,write*=half", check_done);
  check("read%2=EINTR,write%2=EINTR,open%2=EINTR", check_done);
  for (const std::string plan : {"write#1=SIGTERM", "read#1000=SIGTERM"}) {
    check(plan, [](const Outcome& outcome, const Files& files, const Expected&) {
      CHECK(outcome.status == -SIGTERM);
      CHECK(outcome.err == "");
      CHECK(files.empty());
    });
  }
}

TEST_CASE("a file that shrinks or grows while it is read is refused, or was read before") {
  FaultFolder at;
  const auto refused = [](const Words& words) -> Check {
    return [words](Outcome outcome, Files files, const Expected& expected) {
      files.erase("x.npy");
      files.erase("long.npy");
      if (outcome.status == 0) return check_done(outcome, files, expected);
      CHECK(expected.outcome.out.starts_with(outcome.out));
      outcome.out.clear();
      CHECK(refusal_fault(outcome, words) == "");
      CHECK(files.empty());
    };
  };
  const std::pair<std::string, Scenario> readers[]{
      {"x.npy", kOneThread},
      {"x.npy", kTwoThreads},
      {"x.npy", {{"x.npy"}}},
      {"long.npy", {"long.npy -o y.npy"_w}},
      {"x.npy", {"softmax x.npy -o y.npy"_w}},
      {"x.npy", {"show x.npy --threshold 10000"_w}},
  };
  for (const auto& [name, scenario] : readers) {
    CHECK(walk(at, scenario, "read", "size:10000", refused({name, "cut off"})) > 2);
    CHECK(walk(at, scenario, "read", "size:2000000", refused({name, "goes on after"})) > 2);
  }
  // At the first read, when its length has been taken down, it is refused always.
  for (const std::string plan : {"read#1=size:10000", "read#1=size:2000000"}) {
    CHECK(refusal_fault(at.run(kOneThread, plan), {"x.npy"}) == "");
    at.take();
  }
  CHECK(refusal_fault(at.run({{"small.json"}}, "read#1=size:9"), {}) == "");
}

TEST_CASE("files without permission are named with the reason") {
  const FaultFolder at;
  const auto path = [&](const char* name) { return at / name; };
  REQUIRE(::chmod(path("x.npy").c_str(), 0) == 0);
  REQUIRE(::chmod(path("y.npy").c_str(), 0444) == 0);
  fs::create_directory(path("shut"));
  REQUIRE(::chmod(path("shut").c_str(), 0500) == 0);
  // Permissions do not bind root, unless it has given up its capabilities.
  const auto check_denied = [&](const Words& words, const std::string& name) {
    Command command = at.command(words);
    if (::geteuid() == 0) {
      command.arguments = Words{"--bounding-set=-all", "--inh-caps=-all", command.program} + words;
      command.program = "/usr/bin/setpriv";
    }
    CHECK(fault_of(command, {name + ": Permission denied"}) == "");
  };
  check_denied({"x.npy"}, "x.npy");
  check_denied("small.npy --weight x.npy"_w, "x.npy");
  check_denied("small.npy -o y.npy"_w, "y.npy");
  check_denied("small.npy -o shut/y.npy"_w, "shut/y.npy");
  CHECK(read_file(path("y.npy")) == "old");
  CHECK(list_directory(path("shut")).empty());
}

TEST_CASE(
    "a FIFO is read as a pipe, and a device without an end is refused before it fills memory") {
  const FaultFolder at;
  CHECK(at.shell_output(
            "set -e; mkfifo f; cat x.npy > f & lnorm f -o y.npy; lnorm x.npy | cmp - y.npy") == "");
  for (const Words& words : std::vector<Words>{{"/dev/zero"},
                                               "/dev/zero --from npy"_w,
                                               "/dev/zero --from json"_w,
                                               "stats /dev/zero --from json"_w,
                                               "compare /dev/zero /dev/zero"_w,
                                               "show /dev/zero --from json"_w}) {
    CAPTURE(words);
    const Outcome outcome = support::run(words);
    CHECK(refusal_fault(outcome, {"/dev/zero"}) == "");
    CHECK(outcome.cpu_seconds < 2);
  }
}

TEST_CASE("a limit on the size of files holds for temporary files, too") {
  FaultFolder at;
  CHECK(at.shell_fault("export TMPDIR=tmp; ulimit -f 1; cat long.npy | lnorm",
                       {"a temporary file in ", "File too large"}) == "");
  CHECK(at.take().empty());
}

TEST_CASE("a complaint that cannot be written still has its exit status") {
  CHECK(support::run({.arguments = {"no.npy"}, .err = file("/dev/full")}).status == 2);
  CHECK(support::run({.arguments = {"no.npy"}, .err = closed()}).status == 2);
}
