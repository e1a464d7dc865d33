// Every output of lnorm-mpi is that of lnorm, byte for byte, whatever the number of ranks.

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "mpi/job.hpp"
#include "support/catch.hpp"
#include "support/files.hpp"

using support::Command;
using support::Job;
using support::Outcome;
using support::read_file;
using support::TempDir;
using support::write_file;
using Words = std::vector<std::string>;

namespace {

std::string floats(std::int64_t count, double step) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i) {
    values.push_back(static_cast<float>(std::sin(step * static_cast<double>(i * i % 100'003)) +
                                        static_cast<double>(i % 11)));
  }
  return support::bytes_of(values);
}

std::string npy_of(const std::vector<std::int64_t>& shape, double step = 1) {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) count *= extent;
  return support::npy("<f4", shape, floats(count, step));
}

std::string fortran(std::string file) { return file.replace(file.find("False"), 5, "True "); }

// Tensors of all kinds, in a folder.
class Corpus {
 public:
  Corpus() {
    add("x", npy_of({700, 96}));
    add("z", npy_of({700, 96}, 1.5));
    add("w", npy_of({96}, 0.3));
    add("two", npy_of({2, 5}));  // fewer rows than ranks
    add("row", npy_of({1, 300'000}));
    add("none", npy_of({0, 5}));
    add("nothing", npy_of({5, 0}));
    add("scalar", npy_of({}));
    add("cube", npy_of({60, 7, 90}));
    add("order", fortran(npy_of({60, 7, 90})));
    std::string spoiled = npy_of({300, 96});
    const float nan = std::nanf("");
    spoiled.replace(128 + 4 * 96 * 200 + 12, 4, reinterpret_cast<const char*>(&nan), 4);
    add("nan", spoiled);
    write_file(dir_ / "set.safetensors", set_of(1));
    write_file(dir_ / "other.safetensors", set_of(1.001));
  }

  std::string path() const { return dir_.path().string(); }

  // The files that a command writes into the folder "out", and what it prints.
  struct Result {
    int status;
    std::string printed;
    std::vector<std::pair<std::string, std::string>> files;

    bool operator==(const Result&) const = default;
  };
  template <class Run>
  Result result_of(Run run) const {
    std::filesystem::remove_all(dir_ / "out");
    std::filesystem::create_directory(dir_ / "out");
    const Outcome outcome = run();
    Result result{outcome.status, outcome.out, {}};
    for (const std::string& name : support::list_directory(dir_ / "out")) {
      result.files.emplace_back(name, read_file(dir_ / ("out/" + name)));
    }
    return result;
  }

  void check(const Words& arguments) const {
    const Result expected = result_of([&] {
      Command command;
      command.arguments = arguments;
      command.directory = path();
      return support::run(command);
    });
    for (const int ranks : support::rank_counts()) {
      INFO(ranks << " ranks: " << Catch::Detail::stringify(arguments));
      Outcome outcome;
      const Result actual = result_of([&] {
        outcome = support::run(Job{ranks, arguments, path()});
        return outcome;
      });
      INFO(outcome.err);
      CHECK(actual.status == expected.status);
      CHECK(support::difference(actual.printed, expected.printed) == "");
      CHECK(actual.files == expected.files);
    }
  }

 private:
  void add(const std::string& name, const std::string& bytes) {
    write_file(dir_ / (name + ".npy"), bytes);
  }

  static std::string set_of(double step) {
    const std::string large = floats(200 * 96, step);
    const std::string small = floats(5 * 96, step);
    std::string header = "{";
    std::string data;
    for (int i = 0; i < 7; ++i) {
      const std::string& bytes = i == 3 ? large : small;
      header += (i == 0 ? "\"h." : ",\"h.") + std::to_string(i) + R"(":{"dtype":"F32","shape":[)" +
                (i == 3 ? "200" : "5") + R"(,96],"data_offsets":[)" + std::to_string(data.size()) +
                "," + std::to_string(data.size() + bytes.size()) + "]}";
      data += bytes;
    }
    return support::safetensors(header + "}", data);
  }

  TempDir dir_;
};

const Words kTensors{"x", "two", "row", "none", "nothing", "scalar", "cube", "order", "nan"};

}  // namespace

TEST_CASE("apply and softmax on ranks", "[mpi]") {
  const Corpus corpus;
  for (const std::string& tensor : kTensors) corpus.check({tensor + ".npy", "-o", "out/y.npy"});
  for (const std::string axes : {"0", "1", "0,2"}) {
    corpus.check({"cube.npy", "--axes", axes, "-o", "out/y.npy", "--save-mean", "out/m.npy",
                  "--save-rstd", "out/r.npy"});
    corpus.check({"order.npy", "--axes", axes, "-o", "out/y.npy", "--save-mean", "out/m.npy"});
  }
  corpus.check({"x.npy", "--axes", "0", "-o", "out/y.npy"});
  corpus.check({"x.npy", "--weight", "w.npy", "--bias", "w.npy", "--residual", "z.npy",
                "--save-sum", "out/sum.npy", "--dtype", "float16", "-o", "out/y.safetensors"});
  for (const std::string name : {"y.json", "y.txt", "y.npz"}) {
    corpus.check({"two.npy", "-o", "out/" + name, "--save-mean", "out/m.npy"});
  }
  corpus.check({"softmax", "x.npy", "-o", "out/y.npy"});
  corpus.check({"softmax", "cube.npy", "--axes", "0", "-o", "out/y.npy"});
}

TEST_CASE("stats on ranks", "[mpi]") {
  const Corpus corpus;
  for (const std::string& tensor : kTensors) {
    corpus.check({"stats", tensor + ".npy", "--softmax", "--histogram"});
  }
  corpus.check({"stats", "x.npy", "--json"});
  corpus.check({"stats", "nan.npy", "--csv"});
  corpus.check({"stats", "nothing.npy", "--csv"});
  corpus.check({"stats", "nothing.npy", "--json", "--softmax"});
  corpus.check({"stats", "x.npy", "--rows", "3:2", "--json"});
  corpus.check({"stats", "cube.npy", "--axes", "0", "--json"});
  corpus.check({"stats", "order.npy", "--axes", "1", "--all"});
  corpus.check({"stats", "x.npy", "--weight", "w.npy", "--residual", "z.npy", "--all"});
}

TEST_CASE("compare on ranks", "[mpi]") {
  const Corpus corpus;
  for (const std::string& tensor : kTensors) {
    corpus.check({"compare", tensor + ".npy", tensor + ".npy"});
  }
  corpus.check({"compare", "x.npy", "z.npy", "--json"});
  corpus.check({"compare", "x.npy", "z.npy", "--axes", "1", "--max-diffs", "7", "--histogram"});
  corpus.check({"compare", "x.npy", "z.npy", "--by", "rel", "--worst", "9", "--csv"});
  corpus.check({"compare", "cube.npy", "order.npy", "--axes", "0"});
  corpus.check({"compare", "x.npy", "cube.npy"});
}

TEST_CASE("grad on ranks", "[mpi]") {
  const Corpus corpus;
  const auto grad = [&](const std::string& x, const std::string& dy, Words more) {
    Words words{"grad",       x,           "--dy",       dy,        "--dx",
                "out/dx.npy", "--dweight", "out/dw.npy", "--dbias", "out/db.npy"};
    words.insert(words.end(), more.begin(), more.end());
    corpus.check(words);
  };
  for (const std::string& tensor : kTensors) grad(tensor + ".npy", tensor + ".npy", {});
  grad("x.npy", "z.npy", {"--weight", "w.npy"});
  grad("x.npy", "z.npy", {"--axes", "0"});
  grad("cube.npy", "order.npy", {"--axes", "0,2", "--weight", "2"});
  corpus.check({"grad", "x.npy", "--dy", "z.npy", "--dbias", "out/db.json"});
}

TEST_CASE("sets of tensors on ranks", "[mpi]") {
  const Corpus corpus;
  corpus.check(
      {"set.safetensors:*", "-o", "out/y.safetensors", "--save-mean", "out/m.safetensors"});
  corpus.check({"set.safetensors:*", "-o", "out/y.npz"});
  corpus.check({"set.safetensors:*", "-o", "out/"});
  corpus.check({"x.npy", "cube.npy", "two.npy", "-o", "out/y.safetensors"});
  corpus.check({"grad", "set.safetensors:*", "--dy", "other.safetensors:{}", "--dx",
                "out/dx.safetensors", "--dweight", "out/dw.safetensors"});
  corpus.check({"stats", "set.safetensors"});
  corpus.check({"stats", "set.safetensors", "--all", "--json"});
  corpus.check({"compare", "set.safetensors", "other.safetensors"});
  corpus.check({"compare", "set.safetensors", "other.safetensors", "--json"});
  corpus.check({"compare", "set.safetensors", "set.safetensors"});
}

TEST_CASE("commands of one process work on rank 0", "[mpi]") {
  const Corpus corpus;
  corpus.check({"show", "two.npy"});
  corpus.check({"explain", "two.npy"});
}
