// --verbose tells how the data goes, one line a tensor.

#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/files.hpp"
#include "support/process.hpp"

namespace {

using namespace support;
using Words = std::vector<std::string>;

std::string zeros(const std::vector<std::int64_t>& shape, bool fortran = false) {
  std::size_t bytes = 4;
  for (const std::int64_t extent : shape) bytes *= static_cast<std::size_t>(extent);
  std::string file = npy("<f4", shape, std::string(bytes, '\0'));
  if (fortran) file.replace(file.find("False"), 5, "True ");
  return file;
}

Words operator+(Words left, const Words& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

// What --verbose says.
std::string route(Words words, Stream in = {}) {
  words.insert(words.end(), {"--verbose", "--threads", "2"});
  const Outcome outcome = run(std::move(words), std::move(in));
  CHECK(outcome.status == 0);
  return outcome.err;
}

}  // namespace

TEST_CASE("the route is told with its reason", "[verbose]") {
  const TempDir at;
  write_file(at / "wide.npy", zeros({1000, 768}));
  write_file(at / "long.npy", zeros({3, 1 << 20}));
  write_file(at / "tall.npy", zeros({20000, 300}));
  write_file(at / "scattered.npy", zeros({80, 512, 2, 40}, true));
  const Words portable{"--kernel", "portable"};
  const auto apply = [&](Words words, Stream in = {}) {
    words.insert(words.end(), portable.begin(), portable.end());
    return route(std::move(words), std::move(in));
  };
  CHECK(apply({at / "wide.npy"}) == "lnorm: in blocks of 85 rows, 2 threads, kernel portable\n");
  CHECK(apply({at / "long.npy"}) ==
        "lnorm: rows in parts of 65536 elements, 2 threads, kernel portable: a row of 4096 KiB is "
        "more "
        "than should be held\n");
  CHECK(apply({"-"}, pipe_of(read_file(at / "long.npy"))) ==
        "lnorm: rows in parts of 65536 elements, 2 threads, kernel portable, by way of a temporary "
        "file: a row of 4096 KiB is more than should be held\n");
  CHECK(
      apply({at / "tall.npy", "--axes", "0", "-o", at / "y.npy"}) ==
      "lnorm: rows in parts of 2048 elements, 300 rows at a time, 2 threads, kernel portable: rows "
      "lie among each other, and too few of them can be held\n");
  CHECK(route({"softmax", at / "tall.npy", "--axes", "0", "-o", at / "y.npy"}) ==
        "lnorm: in blocks of 58 rows, 2 threads, by way of a temporary file: rows lie among each "
        "other, and too few of them can be held\n");
  CHECK(route({"stats", at / "scattered.npy", "--axes", "1", "--kernel", "portable"}) ==
        "lnorm: in blocks of 2240 rows, 2 threads, kernel portable, by way of a temporary file: "
        "neighbors in a row lie far apart in the input\n");
  const auto grad = [&](const std::string& x, const std::string& dy, Words words, Stream in = {}) {
    return route(Words{"grad", x, "--dy", dy, "-o", at / "y.npy", "--kernel", "portable"} + words,
                 std::move(in));
  };
  CHECK(grad(at / "wide.npy", at / "wide.npy", {}) ==
        "lnorm: in blocks of 56 rows, 2 threads, kernel portable\n");
  CHECK(grad(at / "wide.npy", "-", {}, pipe_of(read_file(at / "wide.npy"))) ==
        "lnorm: in blocks of 56 rows, 2 threads, kernel portable\n");
  CHECK(
      grad(at / "wide.npy", "-", {"--dbias", at / "b.npy"}, pipe_of(read_file(at / "wide.npy"))) ==
      "lnorm: in blocks of 56 rows, 2 threads, kernel portable, by way of a temporary file: "
      "dweight and dbias may need all rows once more\n");
  write_file(at / "c.npy", zeros({30, 40}));
  write_file(at / "f.npy", zeros({30, 40}, true));
  CHECK(grad(at / "c.npy", at / "f.npy", {}) ==
        "lnorm: in blocks of 30 rows, 1 thread, kernel portable, by way of a temporary file: x "
        "and dy lie in different memory orders\n");
  CHECK(route({"compare", at / "wide.npy", at / "wide.npy"}) ==
        "lnorm: in blocks of 32768 elements, 2 threads\n");
  CHECK(route({"compare", at / "scattered.npy", at / "scattered.npy"}) ==
        "lnorm: in blocks of 32768 elements, 2 threads, by way of a temporary file: an input is in "
        "Fortran order\n");
}

TEST_CASE("every line of JSON Lines has its route, and the result is the same", "[verbose]") {
  const std::string lines = "[1, 2]\n[[1, 3], [2, 6]]\n";
  const Words words{"--from", "jsonl", "--kernel", "portable"};
  CHECK(route(words, pipe_of(lines)) ==
        "lnorm: in blocks of 1 row, 1 thread, kernel portable\n"
        "lnorm: in blocks of 2 rows, 1 thread, kernel portable\n");
  Words verbose = words;
  verbose.push_back("--verbose");
  CHECK(run(verbose, pipe_of(lines)).out == output_of(words, pipe_of(lines)));
}
