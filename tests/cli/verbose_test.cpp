// --verbose tells how the data goes, one line a tensor.

#include "support/commands.hpp"

namespace {

using namespace support;

std::string zeros(const std::vector<std::int64_t>& shape, bool fortran = false) {
  const std::string file =
      npy("<f4", shape, std::string(4 * static_cast<std::size_t>(product(shape)), '\0'));
  return fortran ? in_fortran_order(file) : file;
}

// What --verbose says.
std::string route(const Workplace& at, const Words& words, Stream in = {}) {
  const Outcome outcome = at.run(words + "--verbose --threads 2"_w, std::move(in));
  CHECK(outcome.status == 0);
  return outcome.err;
}

}  // namespace

TEST_CASE("the route is told with its reason", "[verbose][many]") {
  const Workplace at;
  at.write("wide.npy", zeros({1000, 768}));
  at.write("long.npy", zeros({3, 1 << 20}));
  at.write("tall.npy", zeros({20000, 300}));
  at.write("scattered.npy", zeros({80, 512, 2, 40}, true));
  const auto route_of = [&](const Words& words, Stream in = {}) { return route(at, words, in); };
  const auto apply = [&](const Words& words, Stream in = {}) {
    return route(at, words + "--kernel portable"_w, in);
  };
  CHECK(apply({"wide.npy"}) == "lnorm: in blocks of 85 rows, 2 threads, kernel portable\n");
  CHECK(apply({"long.npy"}) ==
        "lnorm: rows in parts of 65536 elements, 2 threads, kernel portable: a row of 4096 KiB is "
        "more than should be held\n");
  CHECK(apply({"-"}, pipe_of(at.read("long.npy"))) ==
        "lnorm: rows in parts of 65536 elements, 2 threads, kernel portable, by way of a temporary "
        "file: a row of 4096 KiB is more than should be held\n");
  CHECK(
      apply("tall.npy --axes 0 -o y.npy"_w) ==
      "lnorm: rows in parts of 2048 elements, 300 rows at a time, 2 threads, kernel portable: rows "
      "lie among each other, and too few of them can be held\n");
  CHECK(route_of("softmax tall.npy --axes 0 -o y.npy"_w) ==
        "lnorm: in blocks of 58 rows, 2 threads, by way of a temporary file: rows lie among each "
        "other, and too few of them can be held\n");
  CHECK(route_of("stats scattered.npy --axes 1 --kernel portable"_w) ==
        "lnorm: in blocks of 2240 rows, 2 threads, kernel portable, by way of a temporary file: "
        "neighbors in a row lie far apart in the input\n");
  const auto grad = [&](const std::string& x, const std::string& dy, Words words, Stream in = {}) {
    return route_of(Words{"grad", x, "--dy", dy, "-o", "y.npy", "--kernel", "portable"} + words,
                    std::move(in));
  };
  CHECK(grad("wide.npy", "wide.npy", {}) ==
        "lnorm: in blocks of 56 rows, 2 threads, kernel portable\n");
  CHECK(grad("wide.npy", "-", {}, pipe_of(at.read("wide.npy"))) ==
        "lnorm: in blocks of 56 rows, 2 threads, kernel portable\n");
  CHECK(grad("wide.npy", "-", "--dbias b.npy"_w, pipe_of(at.read("wide.npy"))) ==
        "lnorm: in blocks of 56 rows, 2 threads, kernel portable, by way of a temporary file: "
        "dweight and dbias may need all rows once more\n");
  at.write("c.npy", zeros({30, 40}));
  at.write("f.npy", zeros({30, 40}, true));
  CHECK(grad("c.npy", "f.npy", {}) ==
        "lnorm: in blocks of 30 rows, 1 thread, kernel portable, by way of a temporary file: x "
        "and dy lie in different memory orders\n");
  // Of whole rows.
  CHECK(route_of("compare wide.npy wide.npy"_w) ==
        "lnorm: in blocks of 32256 elements, 2 threads\n");
  CHECK(route_of("compare scattered.npy scattered.npy"_w) ==
        "lnorm: in blocks of 32760 elements, 2 threads, by way of a temporary file: an input is in "
        "Fortran order\n");
}

TEST_CASE("every line of JSON Lines has its route, and the result is the same", "[verbose]") {
  const std::string lines = "[1, 2]\n[[1, 3], [2, 6]]\n";
  const Words words = "--from jsonl --kernel portable"_w;
  CHECK(route({}, words, pipe_of(lines)) ==
        "lnorm: in blocks of 1 row, 1 thread, kernel portable\n"
        "lnorm: in blocks of 2 rows, 1 thread, kernel portable\n");
  CHECK(run(words + Words{"--verbose"}, pipe_of(lines)).out == output_of(words, pipe_of(lines)));
}
