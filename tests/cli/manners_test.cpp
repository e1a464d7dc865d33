#include <algorithm>
#include <numeric>

#include "support/commands.hpp"
#include "support/zip.hpp"

// The program means what it says: commands as a shell runs them, with what they print and their exit status;
// and every hint, followed to the letter, leads on.

namespace {

using namespace support;

// The folder knows its first files, so as to remove what has been written since.
class MannersFolder : public Workplace {
 public:
  MannersFolder() {
    write("x.json", "[[1, 2, 4], [3, 3, 9]]");
    write("cube.json", "[[[1, 2], [3, 5]], [[2, 2], [4, 8]]]");
    write("v.json", "[1, 3]");
    write("off.json", "[1.0000000000000002, 3]");
    write("m.json", R"({"x": [1, 3], "w": [2, 1], "name": "a layer", "t": [["a"]]})");
    write("one.json", R"({"x": [1, 3]})");
    write("lines.json", "[1, 3]\n[2, 6]\n");
    write("x.jsonl", "[1, 3]\n[2, 6]\n");
    const std::string f4 = npy_of_floats({1, 3});
    write("x.npy", f4);
    write("two words.npz", zip({{"a.npy", f4}, {"b.npy", f4}}));
    write("v2.npy", npy("<V2", {2}, bytes_of<std::uint16_t>({0x3f80, 0x4040})));
    std::vector<float> many(2048);
    std::iota(many.begin(), many.end(), 0.0F);
    write("many.npy", npy_of<float>({2, 1024}, many));
    write("__metadata__.npy", f4);
    given_ = files();
  }

  void clean() const {
    for (const std::string& name : files()) {
      if (std::find(given_.begin(), given_.end(), name) == given_.end()) {
        std::filesystem::remove_all(path() / name);
      }
    }
  }

 private:
  Words given_;
};

struct Promise {
  std::string command;
  int status = 0;
  Words words = {};           // in standard output, or of a refusal in standard error
  std::string hint = {};      // of a refusal: its second line
  std::string followed = {};  // the command again, with the hint followed
  int status_then = 0;
  Words words_then = {};
};

bool has_line(const std::string& text, const std::string& line) {
  return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

void check_words(const Outcome& outcome, const Words& words) {
  const std::string& text = outcome.status == 2 ? outcome.err : outcome.out;
  for (const std::string& word : words) {
    CAPTURE(word, text);
    CHECK(contains(text, word));
  }
}

void check_promises(const std::vector<Promise>& promises) {
  const MannersFolder at;
  for (const Promise& promise : promises) {
    CAPTURE(promise.command, promise.followed);
    const Outcome outcome = at.shell(promise.command);
    CAPTURE(outcome.out, outcome.err);
    CHECK(outcome.status == promise.status);
    check_words(outcome, promise.words);
    if (outcome.status == 2) {
      CHECK(refusal_fault(outcome, {}) == "");
      const bool has_hint = outcome.err.find("\nhint: ") != std::string::npos;
      CHECK(has_hint == !promise.hint.empty());
      if (has_hint) CHECK(has_line(outcome.err, "hint: " + promise.hint));
    } else {
      CHECK(outcome.err == "");
    }
    if (!promise.followed.empty()) {
      const Outcome then = at.shell(promise.followed);
      CAPTURE(then.out, then.err);
      CHECK(then.status == promise.status_then);
      check_words(then, promise.words_then);
    }
    at.clean();
  }
}

// A refusal without a hint.
Promise refused(const std::string& command, const std::string& message) {
  return {command, 2, {"lnorm: " + message + "\n"}};
}

// The command is refused, and its hint leads to a command that prints some words.
Promise leads(const std::string& command, const Words& words, const std::string& hint,
              const std::string& followed, const Words& then = {}, int status_then = 0) {
  return {command, 2, words, hint, followed, status_then, then};
}

}  // namespace

TEST_CASE("softmax --axis is that one axis", "[manners]") {
  check_promises({
      {"echo '[[0, 0], [0, 0]]' | lnorm softmax - --axis 0", 0, {"[[0.5,0.5],[0.5,0.5]]\n"}},
      {"echo '[[[0], [0]]]' | lnorm softmax - --axis 1", 0, {"[[[0.5],[0.5]]]\n"}},
      {"echo '[[[0, 0], [0, 0]]]' | lnorm softmax - --axis=-2", 0, {"[[[0.5,0.5],[0.5,0.5]]]\n"}},
      {"lnorm softmax cube.json --axis 1 > a; lnorm softmax cube.json --axes 1 > b; cmp a b"},
      // Elsewhere it is that axis and all after it.
      {"lnorm cube.json --axis 1 > a; lnorm cube.json --axes 1,2 > b; cmp a b"},
  });
}

TEST_CASE("a criterion that is given replaces the default tolerances", "[manners]") {
  check_promises({
      {"lnorm compare off.json v.json", 0, {"agree", "rtol 1e-07 + atol 1e-07"}},
      {"lnorm compare off.json v.json --max-ulp 0", 1, {"differ", "tolerance 0 ulp"}},
      {"lnorm compare off.json v.json --max-ulp 1", 0, {"agree", "tolerance 1 ulp"}},
      {"lnorm compare off.json v.json --rtol 0", 1, {"rtol 0 + atol 0"}},
      {"lnorm compare off.json v.json --atol 0", 1, {"rtol 0 + atol 0"}},
      {"lnorm compare off.json v.json --rtol 1e-3", 0, {"rtol 0.001 + atol 0"}},
      {"lnorm compare off.json v.json --atol 1e-3", 0, {"rtol 0 + atol 0.001"}},
      // All that are given must hold.
      {"lnorm compare off.json v.json --atol 1 --max-ulp 0", 1, {"rtol 0 + atol 1 and 0 ulp"}},
      {"lnorm compare off.json v.json --rtol 0 --max-ulp 9", 1, {"rtol 0 + atol 0 and 9 ulp"}},
      {"lnorm compare off.json v.json --max-ulp 1 --json", 0, {R"("rtol":null,"atol":null)"}},
  });
}

TEST_CASE("text in a file holds every element", "[manners]") {
  // A comma between two elements, and no dots.
  const std::string all = "tr -cd , < y.txt | wc -c; grep -c '\\.\\.\\.' y.txt || true";
  check_promises({
      {"lnorm many.npy -o y.txt; " + all, 0, {"2047\n0\n"}},
      {"lnorm softmax many.npy --to text -o y.txt; " + all, 0, {"2047\n0\n"}},
      {"lnorm many.npy --to text > y.txt; " + all, 0, {"2047\n0\n"}},
      {"lnorm many.npy --threshold 2047 -o y.txt; grep -c '\\.\\.\\.' y.txt", 0, {"2\n"}},
      {"lnorm many.npy --to text | cat", 0, {" ..., "}},
      {"lnorm many.npy --axis 0 --save-mean m.txt -o y.npy; cat m.txt", 0, {"1023.5000"}},
  });
}

TEST_CASE("an output is in the format that its name says, or refused", "[manners]") {
  const std::string list =
      " is not written, expected .npy, .npz, .safetensors, .json, .jsonl, .ndjson, .bin, .raw or "
      ".txt";
  const std::string hint = "--to npy writes .npy there, whatever its name is";
  const auto of = [&](const std::string& command, const std::string& what) {
    return leads(command, {"lnorm: " + what + list}, hint, command + " --to npy; ls");
  };
  std::vector<Promise> promises{
      of("lnorm x.npy -o z.csv", "-o z.csv: .csv"),
      of("lnorm x.npy -o z.pt", "-o z.pt: .pt"),
      of("lnorm softmax x.npy --output z.pth", "-o z.pth: .pth"),
      of("lnorm x.npy -o Z.CSV", "-o Z.CSV: .CSV"),
      refused("lnorm x.npy -o y.npy --save-mean m.csv", "--save-mean m.csv: .csv" + list),
      refused("lnorm x.npy -o y.npy --save-rstd r.pt", "--save-rstd r.pt: .pt" + list),
  };
  for (Promise& promise : promises) promise.words_then = {promise.hint.empty() ? "" : ".npy"};
  check_promises(promises);
  check_promises({
      // That is said before anything is read.
      {"lnorm no.npy -o z.csv 2>&1 | grep -c csv", 0, {"1\n"}},
      {"lnorm x.npy --to json -o z.csv && cat z.csv", 0, {"[-0.999995,0.999995]\n"}},
      {"lnorm x.npy -o NO.JSON && cat NO.JSON", 0, {"[-0.999995,0.999995]\n"}},
      {"lnorm x.npy -o plain && head -c 6 plain | tail -c 5", 0, {"NUMPY"}},
  });
}

TEST_CASE("bfloat16 goes through pipes", "[manners]") {
  check_promises({
      {"lnorm x.npy --dtype bf16 | lnorm show -:x",
       0,
       {"tensor([-1.,  1.], dtype=torch.bfloat16)"}},
      {"lnorm x.npy --dtype bfloat16 | lnorm softmax - --to json", 0, {"[0.119,0.88"}},
      {"lnorm x.npy --dtype bf16 | lnorm | lnorm stats - --json", 0, {"bfloat16"}},
      {"lnorm v2.npy --as bfloat16 | lnorm compare - - 2>&1 | grep -c 'two inputs'", 0, {"1\n"}},
      {"lnorm v2.npy --as bfloat16 | lnorm compare - x.npy --atol 2.5", 0, {"agree"}},
      {"lnorm v2.npy --as bfloat16 -o y && lnorm show y", 0, {"bfloat16  (2)"}},
      // Where the format is named, or is text, it is that.
      {"lnorm x.npy --dtype bf16 -o y.npy && lnorm show y.npy --as bfloat16", 0, {"bfloat16"}},
      {"lnorm v.json --dtype bf16", 0, {"[-1.0,1.0]\n"}},
  });
}

TEST_CASE("an option that has no effect is refused", "[manners]") {
  const auto without = [](const std::string& command, const std::string& message,
                          const std::string& hint = "") {
    Promise promise = refused(command, message);
    promise.hint = hint;
    if (!hint.empty()) promise.followed = command + " " + hint;
    return promise;
  };
  const auto print = [](const std::string& option) {
    return option + " has no effect: it is for text, and the output is ";
  };
  check_promises({
      without("lnorm x.npy --no-keepdim",
              "--no-keepdim has no effect without --save-mean or --save-rstd"),
      without("lnorm x.npy --zero-centered-weight",
              "--zero-centered-weight has no effect without --weight"),
      without("lnorm stats x.npy --zero-centered-weight --bias 1",
              "--zero-centered-weight has no effect without --weight"),
      without("lnorm x.npy --precision 2", print("--precision") + "npy", "--to text"),
      without("lnorm x.npy --edgeitems 2", print("--edgeitems") + "npy", "--to text"),
      without("lnorm v.json --threshold 2", print("--threshold") + "json", "--to text"),
      without("lnorm x.jsonl --linewidth 2", print("--linewidth") + "jsonl", "--to text"),
      without("lnorm softmax x.npy --dtype bf16 --sci-mode on", print("--sci-mode") + "safetensors",
              "--to text"),
      leads("lnorm x.npy -o y.npy --precision 2", {print("--precision") + "npy"}, "-o y.txt",
            "lnorm x.npy -o y.txt --precision 2 && cat y.txt", {"tensor([-1.00,  1.00])"}),
      leads("lnorm x.npy -o 'a b.npy' --name y", {"--name has no effect"}, "-o 'a b.safetensors'",
            "lnorm x.npy -o 'a b.safetensors' --name y && lnorm show 'a b.safetensors'",
            {"y  float32"}),
      without("lnorm x.npy --edgeitems 2 -o y.txt",
              "--edgeitems has no effect: text in a file is whole without --threshold"),
      without("lnorm x.npy --rms --rms", "--rms is given twice, expected once"),
      without("lnorm x.npy --nan null",
              "--nan has no effect: it is for JSON, and the output is npy", "--to json"),
      without("lnorm softmax x.npy --name y",
              "--name has no effect: it is for safetensors and npz, and the output is npy",
              "--to safetensors"),
      leads("lnorm x.npy -o y.json --name y --save-mean m.safetensors",
            {"--name has no effect: it is for safetensors and npz, and the output is json"},
            "-o y.safetensors", "lnorm x.npy -o y.safetensors --name y --save-mean m.safetensors"),
      without("lnorm stats x.npy --all --json", "--all has no effect beside --json"),
      without("lnorm stats x.npy --csv --all", "--all has no effect beside --csv"),
      without("lnorm stats x.npy --histogram --csv", "--histogram has no effect beside --csv"),
      without("lnorm compare x.npy x.npy -q --json", "--json has no effect beside --quiet"),
      without("lnorm compare x.npy x.npy --max-diffs 1 -q",
              "--max-diffs has no effect beside --quiet"),
      without("lnorm compare x.npy x.npy -q --axis 0", "--axis has no effect beside --quiet"),
      without("lnorm compare x.npy x.npy -q --axes 0", "--axes has no effect beside --quiet"),
      without("lnorm compare x.npy x.npy --as bfloat16",
              "x.npy: is float32, found --as bfloat16, which is for an .npy of dtype V2"),
      without("lnorm show x.npy --as bfloat16",
              "x.npy: is float32, found --as bfloat16, which is for an .npy of dtype V2"),
  });
  check_promises({
      {"lnorm show one.json --header", 0, {"one.json:x: float64, shape (2)\ntensor([1., 3.]"}},
      {"cat one.json | lnorm show --precision 2", 0, {"tensor([1., 3.]"}},
      {"lnorm many.npy --edgeitems 2 --threshold 9 -o y.txt"},
      {"lnorm many.npy --edgeitems 2 --to text | cat", 0, {" ..., "}},
      leads("lnorm show m.json --header", {"m.json: found 4 tensors, x, w, name, t, expected one"},
            "name one: m.json:x", "lnorm show m.json:x --header", {"m.json:x: float64, shape (2)"}),
      leads("lnorm show m.json --precision 2",
            {"m.json: found 4 tensors, x, w, name, t, expected one"}, "name one: m.json:x",
            "lnorm show m.json:x --precision 2", {"tensor([1., 3.]"}),
      // What is for one of several outputs has an effect.
      {"lnorm x.npy -o y.npy --save-mean m.txt --precision 1 && cat m.txt", 0, {"tensor([2.]"}},
      {"lnorm x.npy -o y.npy --save-rstd r.json --nan null && cat r.json", 0, {"[0.99999"}},
      {"lnorm v.json --weight v2.npy --as bfloat16", 0, {"[-0.99999"}},
      {"lnorm v.json --threads 2 --kernel portable --progress never", 0, {"[-0.99999"}},
      {"lnorm compare v.json v.json -q --color always --threads 1", 0},
      {"lnorm stats v.json --json --color always", 0, {"\"schema\""}},
  });
}

TEST_CASE("an option that is not there has a hint that leads on", "[manners]") {
  // wrong: in place of it the hint, or what it names.
  const auto in_place = [](const std::string& head, const std::string& wrong,
                           const std::string& tail, const std::string& hint,
                           const std::string& right) {
    const std::string word = wrong.substr(0, wrong.find(' '));
    return leads("lnorm " + head + wrong + tail, {"lnorm: there is no option " + word + "\n"}, hint,
                 "lnorm " + head + right + tail);
  };
  const auto typo = [&](const std::string& head, const std::string& wrong, const std::string& right,
                        const std::string& value = "") {
    return in_place(head, wrong, value, "did you mean " + right + "?", right);
  };
  const auto ours = [&](const std::string& head, const std::string& wrong, const std::string& right,
                        const std::string& value = "") {
    return in_place(head, wrong, value, "here it is " + right, right);
  };
  check_promises({
      typo("x.npy ", "--weigth", "--weight", " 2"),
      typo("x.npy ", "--weigh=2", "--weight", " 2"),
      typo("x.npy ", "--unbiassed", "--unbiased"),
      typo("x.npy --bias 1 ", "--Eps", "--eps", " 1"),
      typo("x.npy ", "-eps", "--eps", " 1"),
      typo("x.npy ", "-output", "--output", " y.npy"),
      typo("x.npy ", "--normalized_shape", "--normalized-shape", " 2"),
      typo("x.npy ", "--norm", "--normalized-shape", " 2"),
      typo("stats x.npy ", "--histgram", "--histogram"),
      typo("compare x.npy x.npy ", "--quite", "--quiet"),
      typo("show x.npy ", "--headers", "--header"),
      typo("softmax x.npy ", "--axs", "--axis", " 0"),
      typo("apply x.npy ", "--unbaised", "--unbiased"),
      ours("x.npy ", "--epsilon", "--eps", " 1e-6"),
      ours("x.npy ", "--layer_norm_eps", "--eps", " 1e-6"),
      ours("stats x.npy ", "--correction", "--ddof", " 1"),
      ours("x.npy ", "--out", "-o", " y.npy"),
      ours("x.npy ", "-out", "-o", " y.npy"),
      ours("softmax x.npy ", "--outfile", "-o", " y.npy"),
      ours("x.npy ", "--type", "--dtype", " half"),
      ours("x.npy ", "--format", "--to", " json"),
      ours("x.npy ", "-w", "--weight", " 2"),
      ours("x.npy ", "--jobs", "--threads", " 2"),
      ours("x.npy ", "--zero_centered_gamma", "--zero-centered-weight", " --weight 1"),
      ours("compare x.npy x.npy ", "--rel-tol", "--rtol", " 0"),
      ours("compare x.npy x.npy ", "--ulps", "--max-ulp", " 0"),
      ours("compare x.npy x.npy ", "--silent", "--quiet"),
      in_place("x.npy ", "--dim", " 0", "here it is --axes, or --axis for the first of several",
               "--axes"),
      in_place("x.npy ", "--dim", " 0", "here it is --axes, or --axis for the first of several",
               "--axis"),
      in_place("softmax x.npy ", "--dim", " 0", "here it is --axis, or --axes for several",
               "--axis"),
      in_place("x.npy -o y.npy --save-mean m.npy ", "--keepdims", "",
               "mean and rstd keep the normalized axes as 1; --no-keepdim drops them", ""),
      in_place("x.npy -o y.npy --save-mean m.npy ", "--keepdim", "",
               "mean and rstd keep the normalized axes as 1; --no-keepdim drops them",
               "--no-keepdim"),
      in_place("compare x.npy x.npy ", "--tol", " 0", "here they are --rtol and --atol", "--rtol"),
      in_place("compare x.npy x.npy ", "--equal-nan", "",
               "NaN equals NaN, unless --no-equal-nan is given", ""),
      in_place("", "--input", " x.npy", "an input is named without an option: lnorm x.npy", ""),
      in_place("x.npy ", "--blue", "", "lnorm apply --help lists the options", "--help"),
      ours("grad x.npy --dy x.npy ", "--dgamma", "--dweight", " w.npy"),
      ours("grad x.npy ", "--grad-output", "--dy", " x.npy"),
      ours("grad x.npy --dy x.npy ", "--grad_input", "--dx", " y.npy"),
      in_place("grad x.npy --dy x.npy ", "--bias", " 1",
               "dbias does not depend on bias, and neither do the others", "--weight"),
      leads("lnorm x.npy --histogram", {"there is no option --histogram"},
            "--histogram is an option of lnorm stats, compare and check",
            "lnorm stats x.npy --histogram"),
      leads("lnorm show x.npy --axis 0", {"there is no option --axis"},
            "--axis is an option of lnorm apply, stats, compare, check, mutants, inputs, softmax, "
            "grad, explain and "
            "report",
            "lnorm stats x.npy --axis 0"),
      in_place("stats x.npy ", "-o", " f", "the result goes to standard output: > FILE", ">"),
      in_place("compare x.npy v.json ", "--out", " f",
               "the report goes to standard output: > FILE; --page writes a page", ">"),
      in_place("show x.npy ", "--output", " f", "the result goes to standard output: > FILE", ">"),
      ours("x.npy ", "--json", "--to json"),
      ours("softmax x.npy ", "--text", "--to text"),
      ours("stats x.npy ", "--precision", "--digits", " 3"),
      ours("show x.npy ", "--digits", "--precision", " 3"),
      in_place("x.npy -o y.npy ", "--save-std", " f", "--save-rstd writes rstd, which is 1 / std",
               "--save-rstd"),
      in_place(
          "softmax x.npy ", "--weigth", " 2",
          "--weight is an option of lnorm apply, stats, check, mutants, grad, explain and report",
          "--help #"),
      in_place("x.npy ", "--elementwise-affine", "", "without --weight and --bias there are none",
               ""),
      in_place("x.npy ", "--biased", "", "biased is the default: the variance divides by n", ""),
      {"lnorm -V", 0, {"lnorm "}},
      leads("lnorm --verison", {"there is no option --verison"}, "lnorm --version",
            "lnorm --version"),
      leads("lnorm x.npy --version", {"there is no option --version"}, "lnorm --version",
            "lnorm --version"),
      leads("lnorm x.npy --eps", {"--eps takes one value, found none"},
            "lnorm apply --help lists the options", "lnorm apply --help", {"--eps E"}),
      leads("lnorm x.npy --rms=1", {"--rms takes no value"}, "lnorm apply --help lists the options",
            "lnorm apply --help", {"--rms"}),
      refused("lnorm x.npy --eps 1 --eps 2", "--eps is given twice, expected once"),
      refused("lnorm compare x.npy x.npy --max-diffs -1",
              "--max-diffs: '-1' is not an integer from 0 to 1000000"),
      refused("lnorm compare x.npy x.npy --worst 99999",
              "--worst: '99999' is not an integer from 0 to 1000"),
      refused("lnorm x.npy --eps -1", "--eps: -1 is negative, expected 0 or more"),
      refused("lnorm x.npy --ddof -1",
              "--ddof: '-1' is not an integer from 0 to 9223372036854775807"),
      refused("lnorm x.npy -o y.npy --output z.npy",
              "-o (or --output) is given twice, expected once"),
      refused("lnorm x.npy --weight 1 --gamma 2",
              "--weight (or --gamma,--scale) is given twice, expected once"),
      refused("lnorm x.npy --axis 0 --axis 0", "--axis is given twice, expected once"),
  });
}

TEST_CASE("a foreign option leads to what does it, in whatever command it stands", "[manners]") {
  const auto foreign = [](const std::string& command, const std::string& option,
                          const std::string& hint, const std::string& followed) {
    return leads("lnorm " + command + " " + option,
                 {"lnorm: there is no option " + option.substr(0, option.find(' ')) + "\n"}, hint,
                 followed);
  };
  const std::string tolerances = "the tolerances, --rtol and --atol, are options of lnorm compare";
  const std::string computed =
      "apply computes them: --save-mean and --save-rstd write them, lnorm grad takes them as "
      "--mean and --rstd";
  const std::string kept =
      "a tensor keeps its shape; --axes or --normalized-shape chooses the normalized axes";
  const std::string of_raw = "a tensor keeps its shape; --shape is that of --from raw";
  const std::string saved =
      "lnorm x.npy --save-mean m.npy --save-rstd r.npy -o y.npy; "
      "lnorm grad x.npy --dy x.npy --mean m.npy --rstd r.npy -o dx.npy";
  const std::string raw = "tail -c 8 x.npy | lnorm show --from raw --as float32 --shape 2,1";
  std::vector<Promise> promises{
      foreign("x.npy", "--top 5", "the first 5 rows are --rows :5", "lnorm x.npy --rows :5"),
      foreign("stats x.npy", "--worst 5", "here it is --top",
              "lnorm stats x.npy --top 5 --by absmax"),
      foreign("stats x.npy", "--to json", "here it is --json, or --csv",
              "lnorm stats x.npy --json"),
      foreign("explain x.npy", "--to json", "here it is --json", "lnorm explain x.npy --json"),
      foreign("report x.npy", "--page r.html", "the page goes to -o report.html",
              "lnorm report x.npy -o report.html"),
      foreign("compare x.npy x.npy", "-o r.html",
              "the report goes to standard output: > FILE; --page writes a page",
              "lnorm compare x.npy x.npy --page r.html"),
      foreign("show x.npy", "--mean", "lnorm stats has the mean and variance of every row",
              "lnorm stats x.npy"),
      foreign("stats m.json", "--only x", "FILE:PATTERN chooses tensors, 'x.npz:h.*' for instance",
              "lnorm stats 'm.json:x*'"),
      foreign("compare x.npy x.npy", "--width 60", "here it is --linewidth",
              "lnorm compare x.npy x.npy --linewidth 60"),
      foreign("stats x.npy", "--linewidth 60",
              "the report is as wide as the terminal, or 80 columns", "lnorm stats x.npy"),
      leads("lnorm compare x.npy x.npy --shape 1", {"--shape has no effect without --from raw"},
            kept, "lnorm compare x.npy x.npy --axes 0"),
      foreign("compare x.npy x.npy", "--max-diff 1",
              "here it is --max-abs; --max-diffs is how many are listed",
              "lnorm compare x.npy x.npy --max-abs 1"),
      leads("lnorm --help stat", {"there is no command 'stat'"}, "did you mean lnorm stats?",
            "lnorm --help stats"),
      leads("lnorm help stats", {"there is neither a command nor a file 'help'"},
            "here it is lnorm stats --help", "lnorm stats --help"),
      leads("tail -c 8 x.npy > e.bin; lnorm e.bin --as float32 --shape 2",
            {"--shape has no effect without --from raw"}, "--from raw",
            "tail -c 8 x.npy > e.bin; lnorm e.bin --as float32 --shape 2 --from raw"),
      foreign("compare x.npy x.npy", "--top 5", "here it is --worst",
              "lnorm compare x.npy x.npy --worst 5"),
      foreign("show x.json", "--head 5", "the first 5 rows are --rows :5",
              "lnorm show x.json --rows :5"),
      foreign("show x.json", "--tail 5",
              "the last 5 rows are --rows -5:", "lnorm show x.json --rows -5:"),
      foreign("stats x.npy", "--mu m.npy", "the report has the mean and variance of every row",
              "lnorm stats x.npy"),
      foreign("softmax x.npy", "--mu m.npy", "--save-mean is an option of lnorm apply",
              "lnorm apply x.npy --save-mean m.npy -o y.npy"),
      foreign("grad x.npy --dy x.npy", "--inv-std r.npy", "here it is --rstd", saved),
      foreign("show x.npy", "--dim 0",
              "--axis is an option of lnorm apply, stats, compare, check, mutants, inputs, "
              "softmax, grad, explain "
              "and report",
              "lnorm softmax x.npy --axis 0"),
      foreign("show x.npy", "--epsilon 1",
              "--eps is an option of lnorm apply, stats, check, mutants, inputs, grad, explain and "
              "report",
              "lnorm stats x.npy --eps 1"),
      foreign("compare x.npy x.npy", "--sqnr 60", "did you mean --min-sqnr?",
              "lnorm compare x.npy x.npy --min-sqnr 60"),
      foreign(
          "softmax x.npy", "--wieght 2",
          "--weight is an option of lnorm apply, stats, check, mutants, grad, explain and report",
          "lnorm apply x.npy --weight 2"),
      foreign("x.npy", "--raw", "here it is --from raw",
              "lnorm x.npy --from raw --as float32 --shape 34"),
      leads("lnorm x.npy --shape 2,1", {"--shape has no effect without --from raw"}, kept,
            "lnorm x.npy --axes 0 && lnorm x.npy --normalized-shape 2"),
  };
  for (const std::string command : {"stats", "apply", "show", "softmax"}) {
    promises.push_back(
        foreign(command + " x.npy", "--tol 1", tolerances, "lnorm compare x.npy x.npy --rtol 1"));
  }
  for (const std::string option : {"--mu", "--inv-std", "--inv_std_dev", "--invvar"}) {
    promises.push_back(foreign("apply x.npy", option + " m.npy", computed, saved));
  }
  for (const std::string option :
       {"--reshape", "--view", "--unsqueeze", "--flatten", "--permute"}) {
    for (const std::string command : {"apply x.npy", "stats x.npy", "compare x.npy x.npy"}) {
      promises.push_back(foreign(command, option + " 1,2", kept, "lnorm " + command + " --axes 0"));
    }
    promises.push_back(foreign("show x.npy", option + " 1,2", of_raw, raw));
  }
  // Short words that are only an edit away from an option of another command.
  for (const std::string option : {"--nam", "--dz"}) {
    promises.push_back(foreign("stats x.npy", option, "lnorm stats --help lists the options",
                               "lnorm stats --help"));
  }
  check_promises(promises);
}

TEST_CASE("a member that is not there leads to the nearest one", "[manners]") {
  const std::string make =
      "mkdir -p run && lnorm x.npy -o run/rms.in.npy && lnorm x.npy -o run/rms.out.npy && "
      "lnorm 'run:*' -o d.npz && lnorm 'run:*' -o d.safetensors && lnorm 'run:*' -o d.json && "
      "echo '{\"weight_map\": {\"rms.in\": \"d.safetensors\", \"rms.out\": \"d.safetensors\"}}' > "
      "d.index.json && lnorm 'run:*' -o 'a b.npz' && cp " +
      data_file("torch/checkpoint_2_6.pt") + " d.pt; ";
  const auto typo = [&](const std::string& wrong, const std::string& right) {
    return leads(make + "lnorm show " + wrong, {"there is no tensor '"},
                 "did you mean " + right + "?", make + "lnorm show " + right);
  };
  check_promises({
      typo("d.npz:rms.im", "d.npz:rms.in"),
      typo("d.safetensors:rms.im", "d.safetensors:rms.in"),
      typo("d.json:rms.ou", "d.json:rms.out"),
      typo("d.index.json:rms.im", "d.index.json:rms.in"),
      typo("run:rms.im", "run:rms.in"),
      typo("'a b.npz:out'", "'a b.npz:rms.out'"),
      typo("d.pt:model.0.wieght", "d.pt:model.0.weight"),
      leads(make + "cat d.safetensors | lnorm show -:rms.im",
            {"standard input: there is no tensor 'rms.im', only rms.in, rms.out"},
            "did you mean -:rms.in?", make + "cat d.safetensors | lnorm show -:rms.in"),
      leads(make + "lnorm x.npy --weight d.npz:rms.im",
            {"--weight d.npz: there is no tensor 'rms.im'"}, "did you mean d.npz:rms.in?",
            make + "lnorm x.npy --weight d.npz:rms.in"),
      leads("echo '{\"xhat\": [1, 3]}' > r.jsonl; lnorm r.jsonl:xhst",
            {"r.jsonl:1:1: there is no member 'xhst', only xhat"}, "did you mean r.jsonl:xhat?",
            "echo '{\"xhat\": [1, 3]}' > r.jsonl; lnorm r.jsonl:xhat"),
      refused("lnorm m.json:blue", "m.json: there is no tensor 'blue', only x, w, name, t"),
      // Of a pattern, or of every input, one name would be another tensor.
      refused(make + "lnorm 'd.npz:rms.i?x'",
              "d.npz: there is no tensor that matches 'rms.i?x', only rms.in, rms.out"),
      refused(make + "lnorm 'run:*' --weight 'd.npz:{}x' -o y.npz",
              "run/rms.in.npy: --weight d.npz: there is no tensor 'rms.inx', only rms.in, rms.out"),
      typo("d.npz:RMS.IN", "d.npz:rms.in"),
  });
}

TEST_CASE("numbers without brackets, and elements alone, are told from JSON", "[manners]") {
  const std::string brackets =
      "a list in JSON has brackets: [1, 2, 3]; raw elements, not text, are --from raw --as float32 "
      "--shape D[,D...]";
  const std::string alone = "raw elements, not text, are --from raw --as float32 --shape D[,D...]";
  const std::string made = "tail -c 8 x.npy > e.bin; cp e.bin e; ";
  const std::string as = " --from raw --as float32 --shape 2 --to json";
  std::vector<Promise> promises{
      leads(made + "lnorm e.bin", {"e.bin: is none of .npy"}, alone, made + "lnorm e.bin" + as),
      leads(made + "lnorm e", {"e: is none of .npy"}, alone, made + "lnorm e" + as),
      leads(made + "lnorm < e", {"standard input: is none of .npy"}, alone,
            made + "lnorm" + as + " < e"),
      leads(made + "lnorm compare e.bin x.npy", {"e.bin: is none of .npy"}, alone,
            made + "lnorm compare e.bin e --from raw --as float32 --shape 2"),
      refused(
          "echo hello > e.txt; lnorm e.txt",
          "e.txt: is none of .npy, .npz, .safetensors, .pt and JSON: it starts with 'hello\\n'"),
      leads("printf '1 2 3\\n' > e.json; lnorm compare e.json v.json",
            {"e.json:1:3: found '2 3' after the value"}, brackets,
            "echo '[1, 2, 3]' > e.json; lnorm compare e.json e.json"),
      leads("printf '1\\n2\\n3\\n' | lnorm", {"standard input:2:1: found '2'"}, brackets,
            "echo '[1, 2, 3]' | lnorm"),
      leads("printf '[1]\\n[2]\\n' | lnorm", {"standard input:2:1: found '[2]'"}, "--from jsonl",
            "printf '[1]\\n[2]\\n' | lnorm --from jsonl"),
      refused("echo '1, x' | lnorm",
              "standard input:1:2: found ', x' after the value, expected nothing"),
  };
  for (const auto& [text, place] : std::vector<std::pair<std::string, std::string>>{
           {"1 2 3", "1:3: found '2 3'"},
           {"1,2,3", "1:2: found ',2,3'"},
           {"1, 2\\n3, 4", "1:2: found ', 2'"},
           {"-0.5\\t2e3\\n1\\t4", "1:6: found '2e3\\t1'"},
           {"1 2\\n3 4", "1:3: found '2'"}}) {
    promises.push_back(leads("printf -- '" + text + "\\n' | lnorm",
                             {"standard input:" + place.substr(0, place.find('\\'))}, brackets,
                             "echo '[1, 2, 3]' | lnorm"));
  }
  check_promises(promises);
}

TEST_CASE("an archive in a pipe is called what it is", "[manners]") {
  const auto from_pipe = [](const std::string& file, const std::string& extension) {
    return leads("cat '" + file + "' | lnorm show",
                 {"lnorm: standard input: a zip archive (" + extension +
                  ") cannot be read from a pipe, since its directory is at its end\n"},
                 "name the file, or redirect it (< x" + extension + ")",
                 "lnorm show < '" + file + "'");
  };
  check_promises({
      from_pipe("two words.npz", ".npz"),
      from_pipe(data_file("torch/checkpoint_1_13.pt"), ".pt"),
      from_pipe(data_file("torch/checkpoint_2_6.pt"), ".pt"),
      from_pipe(data_file("torch/big_endian.pt"), ".pt"),
  });
}

TEST_CASE("an option takes no other option, and no more than its value", "[manners]") {
  const auto swallowed = [](const std::string& rest, const std::string& message,
                            const std::string& hint, const std::string& followed) {
    return leads("lnorm " + rest, {"lnorm: " + message + "\n"}, hint, followed + "; ls");
  };
  const std::string help = "lnorm apply --help lists the options";
  check_promises({
      swallowed("v.json -o --rms", "-o takes a value, found --rms",
                "a file of that name is ./--rms", "lnorm v.json -o ./--rms"),
      swallowed("v.json -o --to json", "-o takes a value, found --to",
                "a file of that name is ./--to", "lnorm v.json -o ./--to"),
      swallowed("v.json --save-mean -o y.npy", "--save-mean takes a value, found -o",
                "a file of that name is ./-o", "lnorm v.json --save-mean ./-o -o y.npy"),
      swallowed("v.json --weight --rms", "--weight takes a value, found --rms",
                "a file of that name is ./--rms", "lnorm v.json --rms"),
      swallowed("v.json --name --rms", "--name takes a value, found --rms", help,
                "lnorm apply --help"),
      swallowed("v.json --eps -o y.npy", "--eps takes a value, found -o", help,
                "lnorm apply --help"),
      swallowed("cube.json --axes 1 2", "--axes takes one value, found 1 and 2",
                "a list is written 1,2", "lnorm cube.json --axes 1,2"),
      swallowed("--normalized-shape 2 2 cube.json",
                "--normalized-shape takes one value, found 2 and 2", "a list is written 2,2",
                "lnorm --normalized-shape 2,2 cube.json"),
      swallowed("cube.json --axis 1 2", "--axis takes one value, found 1 and 2",
                "of several it is --axes 1,2", "lnorm cube.json --axes 1,2"),
      swallowed("stats v.json --histogram 20", "--histogram takes no value, found 20",
                "lnorm stats --help lists the options", "lnorm stats --help"),
      swallowed("v.json --unbiased false", "--unbiased takes no value, found false", help,
                "lnorm apply --help"),
      {"lnorm cube.json --axes -2,-1 --axis=0 2>&1 | grep -c both", 0, {"1\n"}},
      {"lnorm v.json --weight -2 --bias -inf", 0, {"[-Infinity,-Infinity]"}},
      {"lnorm v.json -o=y.json && cat y.json", 0, {"[-0.99999"}},
      {"cp v.json 2; lnorm --rms 2", 0, {"[0.447"}},
      // Names that begin with a dash.
      {"cp v.json ./-v.json; lnorm -- -v.json", 0, {"[-0.99999"}},
      leads("cp v.json ./-v.json; lnorm -- -v.json --to json", {"lnorm: found --to after --\n"},
            "options come before --", "cp v.json ./-v.json; lnorm --to json -- -v.json"),
      leads("cp v.json ./-v.json; lnorm -v.json", {"there is no option -v.json"},
            "the file is ./-v.json", "cp v.json ./-v.json; lnorm ./-v.json"),
      leads("lnorm v.json -o -dash/y.json", {"cannot create -o -dash/y.json"}, "mkdir -p ./-dash",
            "mkdir -p ./-dash; lnorm v.json -o -dash/y.json"),
      leads("lnorm v.json -o \"$(printf 'a\\nb')/y.json\"", {"cannot create -o a\\nb/y.json"},
            "mkdir -p $'a\\nb'", ""),
  });
}

TEST_CASE("a command that is not there has a hint that leads on", "[manners]") {
  const auto wrong = [](const std::string& word, const std::string& rest, const std::string& hint,
                        const std::string& followed) {
    return leads("lnorm " + word + rest,
                 {"lnorm: there is neither a command nor a file '" + word + "'\n"}, hint, followed);
  };
  check_promises({
      wrong("stat", " x.npy --json", "did you mean lnorm stats?", "lnorm stats x.npy --json"),
      wrong("stat", "", "did you mean lnorm stats?", "lnorm stats < x.npy"),
      wrong("comapre", " x.npy x.npy", "did you mean lnorm compare?", "lnorm compare x.npy x.npy"),
      wrong("sofmax", " x.npy", "did you mean lnorm softmax?", "lnorm softmax x.npy"),
      wrong("SHOW", " x.npy", "did you mean lnorm show?", "lnorm show x.npy"),
      wrong("layer_norm", " x.npy", "here it is lnorm apply", "lnorm apply x.npy"),
      wrong("diff", " x.npy x.npy", "here it is lnorm compare", "lnorm compare x.npy x.npy"),
      wrong("backward", " x.npy --dy x.npy", "here it is lnorm grad",
            "lnorm grad x.npy --dy x.npy"),
      wrong("step_by_step", " x.npy", "here it is lnorm explain", "lnorm explain x.npy"),
      wrong("ls", " m.json", "here it is lnorm show", "lnorm show m.json"),
      wrong("help", "", "here it is lnorm --help", "lnorm --help"),
      wrong("blue", " x.npy", "lnorm --help lists the commands", "lnorm --help"),
      leads("lnorm x.npy stats", {"there is no file 'stats', the 2nd INPUT"},
            "the command comes first: lnorm stats x.npy", "lnorm stats x.npy"),
      leads("lnorm x.npy y.npy", {"there is no file 'y.npy', the 2nd INPUT"},
            "-o y.npy writes there", "lnorm x.npy -o y.npy && lnorm show y.npy"),
      wrong("rms_norm", " x.npy", "here it is lnorm apply --rms", "lnorm apply --rms x.npy"),
      wrong("assert_close", " x.npy v.json", "here it is lnorm compare",
            "lnorm compare x.npy v.json"),
      leads("lnorm compare x.npy", {"two tensors, ACTUAL and EXPECTED, found 1"},
            "lnorm compare --help lists the options", "lnorm compare --help"),
  });
}

TEST_CASE("dtypes and shapes are understood as others write them", "[manners]") {
  std::vector<Promise> promises;
  for (const auto& [dtype, names] : std::vector<std::pair<std::string, Words>>{
           {"float16", {"f16", "fp16", "half", "F16"}},
           {"bfloat16", {"bf16", "BF16"}},
           {"float32",
            {"f32", "fp32", "float", "Float32", "f4", "'<f4'", "torch.float32", "np.float32"}},
           {"float64", {"f64", "fp64", "double"}}}) {
    for (const std::string& name : names) {
      promises.push_back(
          {"lnorm x.npy -o y.safetensors --dtype " + name + "; lnorm show y.safetensors",
           0,
           {dtype + "  (2)"}});
    }
  }
  for (const std::string shape : {"2,2", "[2,2]", "(2, 2)", "'[2, 2]'", "2, 2", "(2,2,)"}) {
    const std::string quoted = shape[0] == '\'' ? shape : "'" + shape + "'";
    promises.push_back({"lnorm cube.json --eps 0 --normalized-shape " + quoted +
                        " > a; lnorm cube.json " + "--eps 0 --axis 1 > b; cmp a b"});
  }
  promises.push_back(
      {"lnorm cube.json --axes '[1, 2]' > a; lnorm cube.json --axis 1 > b; cmp a b"});
  promises.push_back({"lnorm v2.npy --as BF16 --to JSON", 0, {"[-1.0,1.0]"}});
  promises.push_back(refused("lnorm v2.npy --as f4",
                             "--as float32 has no effect without --from raw: other files tell "
                             "their dtype, but for bfloat16 and float8 in an .npy"));
  promises.push_back({R"(echo '{"shape": [0], "data": [], "dtype": "f32"}' | lnorm)",
                      0,
                      {R"({"shape":[0],"data":[],"dtype":"float32"})"}});
  promises.push_back(leads("lnorm x.npy --to txt", {"--to: 'txt' is not one of npy|"}, "--to text",
                           "lnorm x.npy --to text"));
  promises.push_back(leads("lnorm x.npy --eps-on var",
                           {"--eps-on: 'var' is not one of variance|std"}, "--eps-on variance",
                           "lnorm x.npy --eps-on variance"));
  promises.push_back({"lnorm v.json --weight nan", 0, {"[NaN,NaN]"}});
  promises.push_back({"lnorm v.json --weight INF", 0, {"[-Infinity,Infinity]"}});
  promises.push_back({"lnorm x.npy --normalized-shape '(2,)'", 0});
  promises.push_back(refused("lnorm x.npy --normalized-shape '[]'",
                             "--normalized-shape: '[]' is not a list of integers: it is empty"));
  promises.push_back(
      refused("lnorm x.npy --axes '[0'", "--axes: '[0' is not an integer (a list is written 1,2)"));
  check_promises(promises);
}

TEST_CASE("a file of several tensors is listed, and one of it named", "[manners]") {
  check_promises({
      {"lnorm show m.json",
       0,
       {"x     float64  (2)  16 B\n", "w     float64  (2)  16 B\n", "name  a string\n",
        "t     no tensor\n"}},
      leads("lnorm m.json", {"m.json: found 4 tensors, x, w, name, t, expected one"},
            "name one: m.json:x, or all of them: 'm.json:*'", "lnorm m.json:x", {"[-0.99999"}),
      leads("cat m.json | lnorm", {"standard input: found 4 tensors, x, w, name, t, expected one"},
            "name one: -:x, or all of them: '-:*'", "cat m.json | lnorm -:x", {"[-0.99999"}),
      leads("lnorm x.npy --weight m.json", {"--weight m.json: found 4 tensors"},
            "name one: m.json:x", "lnorm x.npy --weight m.json:x"),
      refused("lnorm x.npy --weight '{\"a\": 1, \"b\": 2}'",
              "--weight:1:1: found an object of a, b, expected one tensor"),
      leads("lnorm 'two words.npz'", {"found 2 tensors, a, b, expected one"},
            "name one: 'two words.npz:a', or all of them: 'two words.npz:*'",
            "lnorm 'two words.npz:*' --to json", {"{\"a\":["}),
      leads("lnorm softmax < 'two words.npz'", {"standard input: found 2 tensors"},
            "name one: -:a, or all of them: '-:*'", "lnorm softmax -:a < 'two words.npz'"),
      leads("cat 'two words.npz' | lnorm -:a", {"standard input"},
            "name the file, or redirect it (< x.npz)", "lnorm -:a < 'two words.npz'"),
      // The only one needs no name.
      {"lnorm one.json", 0, {"[-0.99999"}},
      {"lnorm one.json:x --weight one.json", 0, {"[-0.99999"}},
      {"lnorm compare one.json v.json", 0, {"agree"}},
      {"echo '{\"x\": {\"shape\": [2], \"data\": [1, 3]}}' | lnorm --to json", 0, {"[-0.99999"}},
      {"lnorm show one.json:x", 0, {"tensor([1., 3.]"}},
  });
}

TEST_CASE("JSON Lines that are not named so are recognized", "[manners]") {
  const std::string message = "lines.json:2:1: found '[2, 6]' after the value, expected nothing";
  check_promises({
      leads("lnorm lines.json", {message}, "--from jsonl", "lnorm lines.json --from jsonl",
            {"]\n["}),
      leads("lnorm show lines.json", {message}, "--from jsonl",
            "lnorm show lines.json --from jsonl"),
      leads("cat lines.json | lnorm stats", {"standard input:2:1: "}, "--from jsonl",
            "cat lines.json | lnorm stats --from jsonl"),
      leads("lnorm lines.json:2", {message}, "--from jsonl", "lnorm lines.json:2 --from jsonl"),
      leads("cat x.jsonl | lnorm -:2", {"standard input:2:1: "}, "--from jsonl",
            "cat x.jsonl | lnorm -:2 --from jsonl"),
      leads("cat x.jsonl | lnorm compare - v.json", {"standard input:2:1: "},
            "write it to a file x.jsonl, and name a line of it x.jsonl:1",
            "lnorm compare x.jsonl:1 v.json"),
      leads("lnorm compare lines.json v.json", {message},
            "name it .jsonl, and a line of it lines.jsonl:1",
            "mv lines.json lines.jsonl; lnorm compare lines.jsonl:1 v.json; mv lines.jsonl "
            "lines.json"),
      leads("lnorm x.npy --weight lines.json", {"--weight " + message},
            "name it .jsonl, and a line of it lines.jsonl:1",
            "cp lines.json lines.jsonl; lnorm x.npy --weight lines.jsonl:1"),
      leads("lnorm x.jsonl -o y.npy", {"y.npy: JSON Lines are several tensors"},
            "name one: x.jsonl:1", "lnorm x.jsonl:1 -o y.npy"),
      leads("lnorm lines.json --from jsonl --to npy", {"JSON Lines"}, "name one: lines.json:1",
            "lnorm lines.json:1 --from jsonl --to npy"),
      leads("cat x.jsonl | lnorm --from jsonl --to npy", {"JSON Lines"}, "name one: -:1",
            "cat x.jsonl | lnorm --from jsonl --to npy -:1"),
      leads("lnorm stats x.jsonl --csv", {"--csv"}, "name one: x.jsonl:1, or take --json",
            "lnorm stats x.jsonl:1 --csv"),
      leads("lnorm compare x.jsonl v.json", {"several tensors"}, "name one: x.jsonl:1",
            "lnorm compare x.jsonl:1 v.json"),
      refused("printf '[1,2] [3,4]' | lnorm",
              "standard input:1:7: found '[3,4]' after the value, expected nothing"),
  });
}

TEST_CASE("a place that cannot be written or read is named with its option", "[manners]") {
  check_promises({
      leads("lnorm x.npy -o no/deep/y.npy",
            {"lnorm: cannot create -o no/deep/y.npy: No such file or directory\n"},
            "mkdir -p no/deep", "mkdir -p no/deep; lnorm x.npy -o no/deep/y.npy"),
      leads("lnorm x.npy -o y.npy --save-mean 'a b/m.npy'",
            {"lnorm: cannot create --save-mean a b/m.npy: No such file"}, "mkdir -p 'a b'",
            "mkdir -p 'a b'; lnorm x.npy -o y.npy --save-mean 'a b/m.npy'"),
      refused("lnorm x.npy -o /dev/full", "-o /dev/full: No space left on device"),
      refused("lnorm x.npy -o y.npy --save-mean /dev/full",
              "--save-mean /dev/full: No space left on device"),
      refused("ln -s loop loop; lnorm x.npy -o loop",
              "cannot create -o loop: Too many levels of symbolic links"),
      refused("lnorm cube.json --weight m.json:x --axis 1",
              "--weight m.json:x has shape (2), but the normalized shape is (2, 2)"),
      refused("cat many.npy | lnorm x.npy --bias -",
              "--bias - has shape (2, 1024), but the normalized shape is (2)"),
      refused("lnorm x.npy --bias '[1]'", "--bias has shape (1), but the normalized shape is (2)"),
      leads("echo '{\"n\": \"a\", \"x\": [1, 3]}' > n.json; lnorm n.json",
            {"found 2 tensors, n, x"}, "name one: n.json:x, or all of them: 'n.json:*'",
            "echo '{\"n\": \"a\", \"x\": [1, 3]}' > n.json; lnorm n.json:x"),
      refused("lnorm x.npy -o .", "-o .: is a directory, expected a file to write"),
      refused("lnorm x.npy -o x.npy/y.npy", "cannot create -o x.npy/y.npy: Not a directory"),
      refused("lnorm x.npy --weight abc", "--weight abc: No such file or directory"),
      refused("lnorm x.npy --bias 1e", "--bias 1e: No such file or directory"),
      refused("lnorm no.npy", "no.npy: No such file or directory"),
      refused("lnorm . --from npy", ".: is a directory, expected a file"),
      leads("lnorm v2.npy", {"'<V2'"}, "--as bfloat16 reads them so",
            "lnorm v2.npy --as bfloat16 --to json"),
      leads("lnorm x.npy --weight v2.npy", {"--weight v2.npy"}, "--as bfloat16 reads them so",
            "lnorm x.npy --weight v2.npy --as bfloat16"),
      leads("lnorm compare v2.npy x.npy", {"'<V2'"}, "--as bfloat16 reads them so",
            "lnorm compare v2.npy x.npy --as bfloat16"),
      {"lnorm cube.json --normalized-shape 2,3", 2, {"normalized shape (2, 3)"}},
      leads("echo '[[[1],[2],[4]]]' | lnorm --normalized-shape 3", {"normalized shape (3)"},
            "(3) is axis 1; did you mean --axes 1?", "echo '[[[1],[2],[4]]]' | lnorm --axes 1"),
      leads("echo '[[[1],[2]]]' | lnorm --normalized-shape 1,2", {"normalized shape (1, 2)"},
            "(1, 2) are axes 0,1; did you mean --axes 0,1?",
            "echo '[[[1],[2]]]' | lnorm --axes 0,1"),
      leads("lnorm __metadata__.npy -o y.safetensors", {"cannot be the name of a tensor"},
            "--name gives it another", "lnorm __metadata__.npy -o y.safetensors --name y"),
  });
}

TEST_CASE("a reader that leaves early is no failure, a stream that is closed is one", "[manners]") {
  const MannersFolder at;
  for (const std::string command :
       {"lnorm many.npy --to json", "lnorm show many.npy --threshold 9999",
        "lnorm stats many.npy --json", "lnorm --help"}) {
    CAPTURE(command);
    const Outcome outcome = at.shell("{ " + command + "; echo $? >&2; } | head -c 1 > first");
    CHECK(outcome.err == "0\n");
    CHECK(at.shell(command + " >&-").status == 2);
    CHECK(at.shell(command + " > /dev/full").status == 2);
  }
  CHECK(at.shell_fault("lnorm <&-", {"standard input"}) == "");
  CHECK(at.shell_fault("lnorm < /dev/null", {"standard input: is empty"}) == "");
}
