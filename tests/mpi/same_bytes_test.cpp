// Every output of lnorm-mpi is that of lnorm, byte for byte, whatever the number of ranks.

#include <cmath>

#include "mpi/job.hpp"
#include "support/catch.hpp"

namespace {

using namespace support;

// Tensors of all kinds, in a folder.
class Corpus : TempDir {
 public:
  Corpus() {
    add("x", waves({700, 96}));
    add("z", waves({700, 96}, 1.5));
    add("w", waves({96}, 0.3));
    add("two", waves({2, 5}));  // fewer rows than ranks
    add("row", waves({1, 300'000}));
    add("none", waves({0, 5}));
    add("nothing", waves({5, 0}));
    add("scalar", waves({}));
    add("cube", waves({60, 7, 90}));
    add("order", in_fortran_order(waves({60, 7, 90})));
    std::string spoiled = waves({300, 96});
    const float nan = std::nanf("");
    spoiled.replace(128 + 4 * 96 * 200 + 12, 4, reinterpret_cast<const char*>(&nan), 4);
    add("nan", spoiled);
    write("set.safetensors", set_of(1));
    write("other.safetensors", set_of(1.001));
  }

  // The files that a command writes into the folder "out", and what it prints.
  struct Result {
    int status;
    std::string printed;
    std::vector<std::pair<std::string, std::string>> files;

    bool operator==(const Result&) const = default;
  };
  template <class Run>
  Result result_of(Run run) const {
    std::filesystem::remove_all(*this / "out");
    std::filesystem::create_directory(*this / "out");
    const Outcome outcome = run();
    Result result{outcome.status, outcome.out, {}};
    for (const std::string& name : list_directory(*this / "out")) {
      result.files.emplace_back(name, read("out/" + name));
    }
    return result;
  }

  void check(const Words& arguments) const {
    const Result expected = result_of([&] {
      return support::run(Command{.arguments = arguments, .directory = path().string()});
    });
    for (const int ranks : rank_counts()) {
      INFO(ranks << " ranks: " << Catch::Detail::stringify(arguments));
      Outcome outcome;
      const Result actual = result_of([&] {
        outcome = support::run(Job{ranks, arguments, path().string()});
        return outcome;
      });
      INFO(outcome.err);
      CHECK(actual.status == expected.status);
      CHECK(difference(actual.printed, expected.printed) == "");
      CHECK(actual.files == expected.files);
    }
  }

 private:
  void add(const std::string& name, const std::string& bytes) { write(name + ".npy", bytes); }

  static std::string set_of(double step) {
    const std::string large = waves({200, 96}, step).substr(128);
    const std::string small = waves({5, 96}, step).substr(128);
    std::string header = "{";
    std::string data;
    for (int i = 0; i < 7; ++i) {
      const std::string& bytes = i == 3 ? large : small;
      header += (i == 0 ? "" : ",") + safetensors_entry("h." + std::to_string(i), "F32",
                                                        i == 3 ? "[200,96]" : "[5,96]", data.size(),
                                                        data.size() + bytes.size());
      data += bytes;
    }
    return safetensors(header + "}", data);
  }
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
  corpus.check("x.npy --axes 0 -o out/y.npy"_w);
  corpus.check({"x.npy", "--weight", "w.npy", "--bias", "w.npy", "--residual", "z.npy",
                "--save-sum", "out/sum.npy", "--dtype", "float16", "-o", "out/y.safetensors"});
  for (const std::string name : {"y.json", "y.txt", "y.npz"}) {
    corpus.check({"two.npy", "-o", "out/" + name, "--save-mean", "out/m.npy"});
  }
  corpus.check("cube.npy --groups 1 -o out/y.npy --save-mean out/m.npy"_w);
  corpus.check("cube.npy --axes 0,2 --affine-axes 1 --weight [1,2,3,4,5,6,7] -o out/y.npy"_w);
  corpus.check("cube.npy --axes 0,2 --mean 0.5 --variance [1,2,3,4,5,6,7] -o out/y.npy"_w);
  corpus.check("softmax x.npy -o out/y.npy"_w);
  corpus.check("softmax cube.npy --axes 0 -o out/y.npy"_w);
}

TEST_CASE("stats on ranks", "[mpi]") {
  const Corpus corpus;
  for (const std::string& tensor : kTensors) {
    corpus.check({"stats", tensor + ".npy", "--softmax", "--histogram"});
  }
  corpus.check("stats x.npy --json"_w);
  corpus.check("stats nan.npy --csv"_w);
  for (const std::string tensor : {"x", "nan", "cube"}) {
    corpus.check({"stats", tensor + ".npy", "--features", "--csv"});
  }
  corpus.check("stats nothing.npy --csv"_w);
  corpus.check("stats nothing.npy --json --softmax"_w);
  corpus.check("stats x.npy --rows 3:2 --json"_w);
  corpus.check("stats cube.npy --mask [[[1],[1],[0],[1],[0],[1],[1]]] --json"_w);
  corpus.check("stats cube.npy --axes 0 --json"_w);
  corpus.check("stats order.npy --axes 1 --all"_w);
  corpus.check("stats cube.npy --groups 7 --all"_w);
  corpus.check("stats cube.npy --mean 1 --rstd 2 --all"_w);
  corpus.check("stats x.npy --weight w.npy --residual z.npy --all"_w);
}

TEST_CASE("compare on ranks", "[mpi]") {
  const Corpus corpus;
  for (const std::string& tensor : kTensors) {
    corpus.check({"compare", tensor + ".npy", tensor + ".npy"});
  }
  corpus.check("compare x.npy z.npy --json"_w);
  corpus.check("compare x.npy z.npy --axes 1 --max-diffs 7 --histogram"_w);
  corpus.check("compare x.npy z.npy --by rel --worst 9 --csv"_w);
  corpus.check("compare cube.npy order.npy --axes 0"_w);
  corpus.check("compare x.npy cube.npy"_w);
  corpus.check("compare x.npy z.npy --mask w.npy --json"_w);
}

TEST_CASE("check on ranks", "[mpi]") {
  const Corpus corpus;
  for (const std::string& tensor : kTensors) {
    corpus.check({"check", tensor + ".npy", tensor + ".npy"});
  }
  corpus.check("check x.npy z.npy --json --rtol 1"_w);
  corpus.check("check x.npy z.npy --worst 3 --rows-out out/rows.csv"_w);
  corpus.check("check x.npy --dy z.npy --actual-dx x.npy"_w);
  corpus.check("check cube.npy cube.npy --groups 1 --dy cube.npy --actual-dbias w.npy"_w);
  corpus.check("check cube.npy cube.npy --mean 0 --rstd 1"_w);
  corpus.check("check set.safetensors other.safetensors --json"_w);
  corpus.check("mutants two.npy --json"_w);
}

TEST_CASE("grad on ranks", "[mpi]") {
  const Corpus corpus;
  const auto grad = [&](const std::string& x, const std::string& dy, Words more) {
    corpus.check(Words{"grad", x, "--dy", dy} +
                 "--dx out/dx.npy --dweight out/dw.npy --dbias out/db.npy"_w + more);
  };
  for (const std::string& tensor : kTensors) grad(tensor + ".npy", tensor + ".npy", {});
  grad("x.npy", "z.npy", "--weight w.npy"_w);
  grad("x.npy", "z.npy", "--axes 0"_w);
  grad("cube.npy", "order.npy", "--axes 0,2 --weight 2"_w);
  grad("cube.npy", "cube.npy", "--groups 7 --weight [1,2,3,4,5,6,7]"_w);
  grad("cube.npy", "order.npy", "--axes 0,2 --affine-axes 1"_w);
  grad("cube.npy", "cube.npy", "--axes 0,2 --mean 0.5 --variance 2"_w);
  corpus.check("grad x.npy --dy z.npy --dbias out/db.json"_w);
}

TEST_CASE("sets of tensors on ranks", "[mpi]") {
  const Corpus corpus;
  corpus.check("set.safetensors:* -o out/y.safetensors --save-mean out/m.safetensors"_w);
  corpus.check("set.safetensors:* -o out/y.npz"_w);
  corpus.check("set.safetensors:* -o out/"_w);
  corpus.check("x.npy cube.npy two.npy -o out/y.safetensors"_w);
  corpus.check({"grad", "set.safetensors:*", "--dy", "other.safetensors:{}", "--dx",
                "out/dx.safetensors", "--dweight", "out/dw.safetensors"});
  corpus.check("stats set.safetensors"_w);
  corpus.check("stats set.safetensors --all --json"_w);
  corpus.check("compare set.safetensors other.safetensors"_w);
  corpus.check("compare set.safetensors other.safetensors --json"_w);
  corpus.check("compare set.safetensors set.safetensors"_w);
}

TEST_CASE("commands of one process work on rank 0", "[mpi]") {
  const Corpus corpus;
  corpus.check("show two.npy"_w);
  corpus.check("explain two.npy"_w);
}
