#include <random>

#include "support/commands.hpp"

// --residual, --save-sum and --round, as users meet them. What x + T gives must be what the program gives for the sum
// that the test has computed.

namespace {

using namespace support;

// x and t, random floats; their exact sum, exact.npy, in float64; rounded.npy, the sum in float32. *_f.npy is the same in
// Fortran order.
struct SumFolder : Workplace {
  explicit SumFolder(const std::vector<std::int64_t>& shape = {2, 3, 40}) {
    const auto count = static_cast<std::size_t>(product(shape));
    std::mt19937 random(static_cast<unsigned>(count));
    std::uniform_real_distribution<float> size(1, 2);
    std::vector<float> x;
    std::vector<float> t;
    std::vector<float> rounded;
    std::vector<double> exact;
    for (std::size_t i = 0; i < count; ++i) {
      x.push_back(size(random) * (random() % 2 == 0 ? 1.0F : -1.0F));
      t.push_back(size(random) / 1024);
      exact.push_back(static_cast<double>(x.back()) + static_cast<double>(t.back()));
      rounded.push_back(static_cast<float>(exact.back()));
    }
    write("x.npy", npy_of<float>(shape, x));
    write("t.npy", npy_of<float>(shape, t));
    write("exact.npy", npy_of<double>(shape, exact));
    write("rounded.npy", npy_of<float>(shape, rounded));
    write("x_f.npy", fortran_npy_of<float>(shape, x));
    write("t_f.npy", fortran_npy_of<float>(shape, t));
  }
};

}  // namespace

TEST_CASE("x + residual is normalized exactly, or rounded first", "[residual]") {
  const SumFolder place;
  for (const std::string options : {"", "--axes 0,2", "--axis 0 --rms",
                                    "--weight 3 --bias 0.5 --round product", "--unbiased"}) {
    CAPTURE(options);
    const std::string exact = place.shell_output("lnorm exact.npy --dtype float32 " + options);
    const std::string rounded = place.shell_output("lnorm rounded.npy " + options);
    CHECK(place.shell_output("lnorm x.npy --residual t.npy " + options) == exact);
    CHECK(exact != rounded);
    const std::string round = options.find("--round") == options.npos ? " --round sum " + options
                                                                      : " " + options + ",sum";
    CHECK(place.shell_output("lnorm x.npy --residual t.npy" + round) == rounded);
  }
}

TEST_CASE("a kernel may add in float32 what is rounded to 16 bits", "[residual]") {
  const Workplace place;
  // 1 + 2^-11 + 2^-30 is nearer to 1 + 2^-10; in float32 it is a tie first.
  place.write("sum.npy", npy_of<float>({4}, {1, 1 + 0x1p-10F, 1 + 0x1p-9F, 1 + 0x3p-10F}));
  place.write("t.npy", npy_of<float>({4}, {0x1p-11F + 0x1p-30F, 0, 0, 0}));
  place.shell_output(
      "lnorm convert sum.npy --dtype float16 -o x.npy; lnorm x.npy --eps 0 -o by_float32.npy; "
      "lnorm x.npy --eps 0 --residual t.npy --round sum --save-sum s.npy -o once.npy; "
      "lnorm x.npy --eps 0 --weight 1.01 -o wrong.npy");
  const auto status = [&](const std::string& output, const std::string& sum) {
    const std::string saved = sum.empty() ? "" : " --actual-sum " + sum;
    return place.shell_output("lnorm check x.npy " + output + saved +
                              " --eps 0 --residual t.npy --round sum -q; echo $?");
  };
  CHECK(status("once.npy", "s.npy") == "0\n");
  CHECK(status("by_float32.npy", "x.npy") == "0\n");
  CHECK(status("wrong.npy", "") == "1\n");
  CHECK(place.shell_output("lnorm compare once.npy by_float32.npy -q; echo $?") == "1\n");
}

TEST_CASE("x and the residual come in any order, format and way", "[residual][many]") {
  const SumFolder place;
  place.shell_output(
      "lnorm show x.npy --precision 12 > /dev/null; "
      "lnorm x.npy --residual t.npy --round sum --save-sum s.safetensors -o y.npy");
  CHECK(place.shell_output("lnorm compare s.safetensors rounded.npy --max-ulp 0 -q; echo $?") ==
        "0\n");
  for (const std::string axes : {"--axis -1", "--axes 0", "--axes 0,1"}) {
    const std::string expected = place.shell_output("lnorm exact.npy --dtype float32 " + axes);
    for (const std::string x : {"x.npy", "x_f.npy", "- < x.npy", "- < x_f.npy"}) {
      for (const std::string t : {"t.npy", "t_f.npy"}) {
        CAPTURE(axes, x, t);
        for (const std::string threads : {" --threads 1", " --threads 3"}) {
          CHECK(place.shell_output("lnorm " + x + " --residual " + t + " --save-sum s.npy " + axes +
                                   threads) == expected);
          CHECK(place.read("s.npy") == place.read("rounded.npy"));
        }
        if (x[0] == '-') continue;
        CHECK(place.shell_output("lnorm " + x + " --residual - " + axes + " < " + t) == expected);
        CHECK(place.shell_output("cat " + t + " | lnorm " + x + " --residual - " + axes) ==
              expected);
      }
    }
  }
}

TEST_CASE("the sum of integers and other dtypes is exact", "[residual]") {
  const SumFolder place;
  // No float64 holds 2^63 - 1 plus 2^63 - 2.
  place.write("a.npy", npy_of<std::int64_t>({3}, {INT64_MAX, INT64_MAX - 1, 5}));
  place.write("b.npy", npy_of<std::int64_t>({3}, {INT64_MAX - 1, INT64_MAX, -5}));
  // Both sums are equal: so is their deviation from the mean.
  CHECK(place.shell_output("lnorm a.npy --residual b.npy --eps 0 --to json") ==
        place.shell_output("echo '[1, 1, 0]' | lnorm --eps 0"));
  place.write("h.npy", npy_of_floats({0.5F, 1.5F, 2.5F}));
  CHECK(place.fault("a.npy --residual h.npy"_w, {"float32", "int64", "--round sum"}) == "");
  CHECK(place.shell_output("lnorm a.npy --residual h.npy --round sum --save-sum - -o y.npy "
                           "| lnorm show --precision 1 --sci-mode off") ==
        "tensor([9223372036854775808.0, 9223372036854775808.0,                   7.5],\n"
        "       dtype=torch.float64)\n");
  place.write("i.npy", npy_of<std::int16_t>({3}, {1, 2, 4}));
  CHECK(place.shell_output("lnorm i.npy --residual h.npy --to json") ==
        place.shell_output("echo '[1.5, 3.5, 6.5]' | lnorm"));
}

TEST_CASE("long rows take a residual", "[residual]") {
  for (const std::vector<std::int64_t>& shape :
       {std::vector<std::int64_t>{1, 300'000}, {300'000, 3}}) {
    const SumFolder place(shape);
    const std::string axis = shape[0] == 1 ? "" : " --axes 0";
    CAPTURE(axis);
    CHECK(place.shell_output("lnorm x.npy --residual t.npy --save-sum s.npy -o y.npy" + axis +
                             "; lnorm exact.npy --dtype float32 -o z.npy" + axis +
                             "; cmp y.npy z.npy") == "");
    CHECK(place.read("s.npy") == place.read("rounded.npy"));
    CHECK(place.shell_output(
              "cat x.npy | lnorm --residual t.npy --round sum --save-sum s.npy -o y.npy "
              "--threads 1" +
              axis + "; lnorm rounded.npy -o z.npy" + axis + "; cmp y.npy z.npy") == "");
    CHECK(place.read("s.npy") == place.read("rounded.npy"));
  }
}

TEST_CASE("every tensor of a set has its residual", "[residual][sets]") {
  const SumFolder place({3, 4});
  place.write("x.json", R"({"h.1.x": [1, 2, 4], "h.2.x": [2, 3, 9], "h.1.r": [1, 1, 0],
                           "h.2.r": [0.5, 0, 1], "same": [1, 0, 0]})");
  place.write("s.json", R"({"h.1.x": [2, 3, 4], "h.2.x": [2.5, 3, 10]})");
  CHECK(place.shell_output("lnorm 'x.json:h.*.x' --residual 'x.json:h.{1}.r' --to json") ==
        place.shell_output("lnorm 's.json:h.*.x' --to json"));
  place.shell_output("lnorm 'x.json:h.*.x' --residual 'x.json:h.{1}.r' -o y/ --save-sum sums.json");
  CHECK(place.shell_output("lnorm compare sums.json s.json --max-ulp 0 -q; echo $?") == "0\n");
  // One for all of them, from a file of several tensors, or of one.
  place.write("one.json", "[1, 0, 0]");
  const std::string expected = place.shell_output("lnorm x.json:h.1.x --residual x.json:same");
  for (const std::string one : {"x.json:same", "one.json"}) {
    place.shell_output("lnorm 'x.json:h.*.x' --residual " + one + " -o y.json");
    CHECK(place.shell_output("lnorm show y.json:h.1.x --to text 2>&1 | head -c 0; "
                             "lnorm x.json:h.1.x --residual " +
                             one) == expected);
  }
  CHECK(place.shell_output("printf '{\"x\": [1, 2, 4]}\\n{\"x\": [3, 2, 4]}\\n' | "
                           "lnorm --from jsonl -:x --residual one.json --to jsonl") ==
        place.shell_output("printf '{\"x\": [2, 2, 4]}\\n{\"x\": [4, 2, 4]}\\n' | "
                           "lnorm --from jsonl -:x --to jsonl"));
  CHECK(place.fault("x.json:h.*.x --residual x.json:h.{1}.no -o none.json"_w,
                    "x.json:h.1.x --residual h.1.no"_w) == "");
  CHECK(place.shell_fault("lnorm 'x.json:h.*.x' --residual - -o none.json < one.json",
                          {"--residual -", "several"}) == "");
  CHECK(!place.has("none.json"));
}

TEST_CASE("stats see the sum", "[residual][stats]") {
  const SumFolder place;
  place.write("a.json", "[[1, 2, 4], [3, 3, 9]]");
  place.write("b.json", "[[0.5, 2, 1], [3, -3, 0.25]]");
  place.write("c.json", "[[1.5, 4, 5], [6, 0, 9.25]]");
  for (const std::string options : {"", "--softmax", "--weight '[1, 2, 3]' --round xhat"}) {
    CAPTURE(options);
    CHECK(place.shell_output("lnorm stats a.json --residual b.json --csv " + options) ==
          place.shell_output("lnorm stats c.json --csv " + options));
  }
  CHECK(
      place.shell_output("lnorm stats x.npy --residual t.npy --csv --weight 3 --bias 1 --round "
                         "sum,xhat,product") ==
      place.shell_output("lnorm stats rounded.npy --csv --weight 3 --bias 1 --round product,xhat"));
}

TEST_CASE("a sum is saved in the output dtype, in any format", "[residual]") {
  const SumFolder place;
  place.write("a.json", "[1, 2]");
  place.write("b.json", "[0.0009765625, 0.25]");
  CHECK(place.shell_output("lnorm a.json --residual b.json --save-sum s.json; cat s.json") ==
        place.shell_output("echo '[1.0009765625, 2.25]' | lnorm") + "[1.0009765625,2.25]\n");
  CHECK(place.shell_output("lnorm a.json --residual b.json --save-sum - -o y.npz --dtype float16 "
                           "| lnorm show --precision 10") ==
        "tensor([1.0009765625, 2.2500000000], dtype=torch.float16)\n");
  // No .npy holds bfloat16.
  CHECK(place.shell_output("lnorm a.json --residual b.json --save-sum - -o y.json --dtype bfloat16 "
                           "| lnorm show -:sum") ==
        "tensor([1.0000, 2.2500], dtype=torch.bfloat16)\n");
}

TEST_CASE("what does not fit is refused before anything is written", "[residual]") {
  const SumFolder place({3, 4});
  place.write("other.npy", npy_of<float>({4, 3}, std::vector<float>(12)));
  struct Case {
    std::string arguments;
    Words words;
  };
  const std::vector<Case> cases{
      {"x.npy --residual other.npy", {"other.npy", "(4, 3)", "x.npy", "(3, 4)"}},
      {"x.npy --residual t.npy:a", {"--residual"}},
      {"x.npy --residual none.npy", {"--residual none.npy"}},
      {"x.npy --residual '[1]'", {"--residual"}},
      {"- --residual - < x.npy", {"standard input", "two inputs"}},
      {"x.npy --save-sum s.npy", {"--save-sum has no effect without --residual"}},
      {"x.npy --round sum", {"--round sum has no effect without --residual"}},
      {"x.npy --round xhat", {"--round xhat has no effect without --weight or --bias"}},
      {"x.npy --weight 2 --round xhat,product",
       {"--round product has no effect without --weight and --bias"}},
      {"x.npy --bias 2 --round product", {"--round product"}},
      {"stats x.npy --round sum", {"--round sum"}},
      {"x.npy --weight 2 --round x-hat", {"x-hat", "hint: --round xhat"}},
      {"x.npy --weight 2 --round xhat,", {"''"}},
      {"x.npy --weight 2 --round xhat,xhat", {"xhat is given twice"}},
      {"x.npy --residual t.npy --save-sum s.foo", {"--save-sum s.foo", ".foo"}},
      {"x.npy --residual t.npy --save-sum y.npy", {"y.npy", "two outputs"}},
      {"softmax x.npy --residual t.npy", {"--residual"}},
  };
  const Words before = place.files();
  for (const auto& [arguments, words] : cases) {
    CAPTURE(arguments);
    const bool is_apply = arguments.find("stats") != 0 && arguments.find("softmax") != 0;
    const std::string script = "lnorm " + arguments;
    const std::size_t redirection = script.find('<');
    const std::string command =
        is_apply ? script.substr(0, redirection) + " -o y.npy " +
                       (redirection == script.npos ? "" : script.substr(redirection))
                 : script;
    CHECK(place.shell_fault(command, words) == "");
    CHECK(place.files() == before);
  }
}
