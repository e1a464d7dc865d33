#include "job.hpp"
#include "support/catch.hpp"

// What lnorm-mpi says of itself.

namespace {

using namespace support;

std::string printed(const Words& words) {
  const Outcome outcome = run(Job{.ranks = 2, .arguments = words});
  CAPTURE(words, outcome.err);
  CHECK(outcome.status == 0);
  return outcome.out;
}

}  // namespace

TEST_CASE("help and version of lnorm-mpi name it", "[mpi]") {
  const std::string help = printed({"--help"});
  CHECK(help.starts_with("lnorm-mpi is lnorm in several processes"));
  CHECK(contains(help, "\nUsage: mpirun -n N lnorm-mpi [COMMAND] [INPUT...] [OPTIONS]\n"));
  CHECK(contains(help, "\nlnorm-mpi COMMAND --help lists"));
  CHECK(contains(help, "\n  mpirun -n 2 lnorm-mpi y.npy"));
  CHECK(contains(printed("compare --help"_w),
                 "Usage: mpirun -n N lnorm-mpi compare ACTUAL EXPECTED [OPTIONS]\n"));
  CHECK(printed({"--version"}).starts_with("lnorm-mpi "));
}

TEST_CASE("the route tells how many ranks work on a tensor", "[mpi]") {
  const TempDir dir;
  const std::string floats(4 * 64 * 32, '\0');
  dir.write("x.npy", npy("<f4", {64, 32}, floats));
  const auto said = [&](const Words& words) {
    const Outcome outcome = run(Job{3, words + Words{"--verbose"}, dir.path().string()});
    CAPTURE(words, outcome.err);
    CHECK(outcome.status == 0);
    return lines_of_lnorm(outcome).at(0);
  };
  for (const Words& words :
       {"x.npy -o y.npy"_w, "x.npy -o y.npy --save-mean m.npy"_w, "stats x.npy"_w,
        "softmax x.npy -o y.npy"_w, "compare x.npy x.npy"_w, "grad x.npy --dy x.npy -o y.npy"_w}) {
    CHECK(contains(said(words), ", 3 ranks"));
  }
  for (const Words& words : {"x.npy -o y.json"_w, "x.npy -o y.npy --save-mean m.json"_w,
                             "compare x.npy x.npy --page page.html"_w,
                             "grad x.npy --dy x.npy -o y.json"_w, "explain x.npy"_w}) {
    CHECK(contains(said(words), "1 of 3 ranks"));
  }
}
