
#include "support/commands.hpp"

// bootstrap.sh fresh, by stand-ins of what it calls: CI runs it for real.

namespace {

using namespace support;

class Machine {
 public:
  Machine() {
    std::filesystem::create_directory(dir_ / "bin");
    std::filesystem::create_directory(dir_ / "tmp");
    add("id", "echo 0");
    add("dpkg-query", "echo installed");
    add("unshare", "while [ \"${1#-}\" != \"$1\" ]; do shift; done; exec \"$@\"");
  }

  void add(const std::string& name, const std::string& script) const {
    const std::filesystem::path path = dir_ / ("bin/" + name);
    write_file(path, "#!/bin/bash\n" + script + "\n");
    std::filesystem::permissions(path, std::filesystem::perms::all);
  }

  // debootstrap is in /usr/sbin, and so not found unless it is added.
  Outcome run(Words words) const {
    words.insert(words.begin(), LNORM_SOURCE_DIR "/bootstrap.sh");
    return support::run(
        {.arguments = std::move(words),
         .environment = {{"PATH", (dir_ / "bin") + ":/usr/bin:/bin"}, {"TMPDIR", dir_ / "tmp"}},
         .program = "/bin/bash"});
  }

  Words left() const { return list_directory(dir_ / "tmp"); }

 private:
  TempDir dir_;
};

void check_refused(const Outcome& outcome, const std::string& message) {
  CAPTURE(outcome.out, outcome.err);
  CHECK(outcome.status == 2);
  CHECK(outcome.err == "bootstrap.sh: " + message + "\n");
}

}  // namespace

TEST_CASE("bootstrap.sh fresh says what it lacks", "[bootstrap]") {
  const Machine machine;
  check_refused(machine.run({"fresh"}), "fresh is for bookworm or trixie");
  check_refused(machine.run({"fresh", "sid"}), "fresh is for bookworm or trixie");
  check_refused(machine.run({"fresh", "trixie", "package"}),
                "fresh runs demo, test, 'test system', bytes, python-test, wheel, wheel-here or "
                "static, found package");
  check_refused(machine.run({"fresh", "trixie"}),
                "fresh needs debootstrap, which is not on the PATH");
  machine.add("id", "echo 1000");
  check_refused(machine.run({"fresh", "trixie"}),
                "fresh installs a system into a folder: only root can");
}

TEST_CASE("bootstrap.sh fresh leaves nothing behind", "[bootstrap]") {
  const Machine machine;
  machine.add("debootstrap", "mkdir -p \"$3/etc\" && echo no such suite; exit 1");
  const Outcome failed = machine.run({"fresh", "trixie"});
  CHECK(failed.status == 1);
  CHECK(failed.err == "no such suite\n");
  CHECK(machine.left().empty());
  // fresh.sh, two processes up, is told to end while the system is being made.
  machine.add("debootstrap",
              "mkdir -p \"$3/etc\"; kill -TERM \"$(cut -d ' ' -f 4 /proc/$PPID/stat)\"; sleep 9");
  const Outcome ended = machine.run({"fresh", "trixie"});
  CHECK(ended.status == 143);
  CHECK(machine.left().empty());
}
