#include <string>
#include <vector>

#include "job.hpp"
#include "support/catch.hpp"
#include "support/files.hpp"

// What lnorm-mpi says of itself.

namespace {

using support::Job;
using support::Outcome;
using Words = std::vector<std::string>;

std::string printed(const Words& words) {
  const Outcome outcome = support::run(Job{.ranks = 2, .arguments = words});
  CAPTURE(words, outcome.err);
  CHECK(outcome.status == 0);
  return outcome.out;
}

}  // namespace

TEST_CASE("help and version of lnorm-mpi name it", "[mpi]") {
  const std::string help = printed({"--help"});
  CHECK(help.starts_with("lnorm-mpi is lnorm in several processes"));
  CHECK(help.find("\nUsage: mpirun -n N lnorm-mpi [COMMAND] [INPUT...] [OPTIONS]\n") !=
        std::string::npos);
  CHECK(help.find("\nlnorm-mpi COMMAND --help lists") != std::string::npos);
  CHECK(help.find("\n  mpirun -n 2 lnorm-mpi y.npy") != std::string::npos);
  CHECK(printed({"compare", "--help"})
            .find("Usage: mpirun -n N lnorm-mpi compare ACTUAL EXPECTED [OPTIONS]\n") !=
        std::string::npos);
  CHECK(printed({"--version"}).starts_with("lnorm-mpi "));
}

TEST_CASE("the route tells how many ranks work on a tensor", "[mpi]") {
  const support::TempDir dir;
  const std::string floats(4 * 64 * 32, '\0');
  support::write_file(dir / "x.npy", support::npy("<f4", {64, 32}, floats));
  const auto said = [&](Words words) {
    words.push_back("--verbose");
    const Outcome outcome = support::run(Job{3, words, dir.path().string()});
    CAPTURE(words, outcome.err);
    CHECK(outcome.status == 0);
    return support::lines_of_lnorm(outcome).at(0);
  };
  for (const Words& words : {Words{"x.npy", "-o", "y.npy"},
                             {"x.npy", "-o", "y.npy", "--save-mean", "m.npy"},
                             {"stats", "x.npy"},
                             {"softmax", "x.npy", "-o", "y.npy"},
                             {"compare", "x.npy", "x.npy"},
                             {"grad", "x.npy", "--dy", "x.npy", "-o", "y.npy"}}) {
    CHECK(said(words).find(", 3 ranks") != std::string::npos);
  }
  for (const Words& words : {Words{"x.npy", "-o", "y.json"},
                             {"x.npy", "-o", "y.npy", "--save-mean", "m.json"},
                             {"compare", "x.npy", "x.npy", "--page", "page.html"},
                             {"grad", "x.npy", "--dy", "x.npy", "-o", "y.json"},
                             {"explain", "x.npy"}}) {
    CHECK(said(words).find("1 of 3 ranks") != std::string::npos);
  }
}
