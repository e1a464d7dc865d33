#include <algorithm>
#include <chrono>
#include <fstream>

#include "support/commands.hpp"

// Where show reads from and how it goes about it. (tests/golden/show_test.cpp holds what it prints
// against PyTorch.)

namespace {

using namespace support;

}  // namespace

TEST_CASE("show prints what apply and softmax print of the same tensor", "[many]") {
  const Workplace at;
  const std::string y = at / "y.npy";
  for (const std::string x : {"sample.npy", "sample.json", "corpus/good/medium_64x33_f4.npy",
                              "corpus/good/shape_0d.npy", "corpus/good/shape_2x0x4.npy",
                              "corpus/good/special_le_f8.npy", "corpus/good/dtype_le_f2.npy"}) {
    for (const Words& options : {Words{}, "--precision 2 --linewidth 40"_w,
                                 "--threshold 5 --edgeitems 1"_w, "--sci-mode on"_w}) {
      CAPTURE(x, options);
      for (const std::string command : {"apply", "softmax"}) {
        const Words of_x{command, data_file(x)};
        output_of(of_x + Words{"-o", y});
        CHECK(output_of(Words{"show", y} + options) == output_of(of_x + "--to text"_w + options));
      }
    }
  }
}

TEST_CASE("show is the same from a file, a pipe, another byte order and JSON") {
  const Workplace at;
  const std::vector<float> elements{1, -2.5, 3e-5F, 4000};
  std::string swapped = bytes_of(elements);
  for (auto it = swapped.begin(); it != swapped.end(); it += 4) std::reverse(it, it + 4);
  const std::string x = npy_of<float>({2, 2}, elements);
  const std::string big = npy(">f4", {2, 2}, swapped);
  const std::string members =
      R"({"a": 1, "x": {"shape": [2, 2], "data": [1, -2.5, 3e-5, 4000], "dtype": "float32"}})";
  at.write("x.npy", x);
  at.write("big.npy", big);
  at.write("x.json", members);
  const std::string expected =
      "tensor([[ 1.0000e+00, -2.5000e+00],\n        [ 3.0000e-05,  4.0000e+03]])\n";
  CHECK(at.output("show x.npy"_w) == expected);
  CHECK(at.output("show big.npy"_w) == expected);
  CHECK(at.output("show x.json:x"_w) == expected);
  CHECK(output_of({"show"}, pipe_of(x)) == expected);
  CHECK(output_of("show -"_w, pipe_of(big)) == expected);
  CHECK(output_of("show -:x"_w, pipe_of(members)) == expected);
  CHECK(at.output({"show"}, file(at / "x.npy")) == expected);
}

TEST_CASE("the header says name, dtype and shape") {
  const Workplace at;
  at.write("x.npy", npy_of<std::int16_t>({2, 1}, {1, 2}));
  const auto header = [&](const Words& arguments, const Stream& in = {}) {
    const std::string text = at.output("show --header"_w + arguments, in);
    return text.substr(0, text.find('\n'));
  };
  CHECK(header({"x.npy"}) == "x.npy: int16, shape (2, 1)");
  CHECK(header({}, pipe_of("[[1, 2, 3]]")) == "standard input: float64, shape (1, 3)");
  CHECK(header({}, pipe_of("5")) == "standard input: float64, shape ()");
  CHECK(header({}, pipe_of("[]")) == "standard input: float64, shape (0)");
  CHECK(at.output("show x.npy"_w) == "tensor([[1],\n        [2]], dtype=torch.int16)\n");
}

TEST_CASE("a tensor that is cut off or goes on is refused before anything is printed") {
  // Long enough that most of it is passed over.
  const std::string x = npy("<f4", {1000, 1000}, std::string(4'000'000, '\0'));
  const Workplace at;
  const std::string path = at / "x.npy";
  struct Case {
    std::string bytes;
    std::string what;
  };
  for (const Case& c : {Case{x.substr(0, x.size() - 1), "cut off"},
                        {x.substr(0, 128 + 2'000'000), "cut off"},
                        {x.substr(0, 128 + 10), "cut off"},
                        {x.substr(0, 128), "cut off"},
                        {x + "\n", "after the tensor"}}) {
    CAPTURE(c.bytes.size());
    CHECK(fault_of("show --header"_w, {"standard input", c.what}, pipe_of(c.bytes)) == "");
    write_file(path, c.bytes);
    CHECK(fault_of({"show", "--header", path}, {path}) == "");
  }
}

TEST_CASE("show passes over what it does not print") {
  constexpr std::int64_t kRows = 1 << 20;
  constexpr std::int64_t kColumns = 1 << 10;
  const Workplace at;
  const std::string path = at / "x.npy";
  // 4 GiB, of which the disk holds the ends alone.
  const std::string start = npy_of<float>({kRows, kColumns}, {1, 2});
  write_file(path, start);
  std::filesystem::resize_file(path, 128 + 4 * kRows * kColumns - 4);
  std::ofstream(path, std::ios::binary | std::ios::app) << bytes_of<float>({-3});

  const auto begin = std::chrono::steady_clock::now();
  const Outcome outcome = run({"show", path});
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  CHECK(outcome.status == 0);
  CHECK(outcome.out ==
        "tensor([[ 1.,  2.,  0.,  ...,  0.,  0.,  0.],\n"
        "        [ 0.,  0.,  0.,  ...,  0.,  0.,  0.],\n"
        "        [ 0.,  0.,  0.,  ...,  0.,  0.,  0.],\n"
        "        ...,\n"
        "        [ 0.,  0.,  0.,  ...,  0.,  0.,  0.],\n"
        "        [ 0.,  0.,  0.,  ...,  0.,  0.,  0.],\n"
        "        [ 0.,  0.,  0.,  ...,  0.,  0., -3.]])\n");
  CHECK(taken.count() < 1);
#ifndef LNORM_SANITIZED  // which keeps what is freed
  CHECK(outcome.peak_kib < run({"show", data_file("sample.npy")}).peak_kib + 1024);
#endif

  // One byte less is found without reading, too.
  std::filesystem::resize_file(path, 128 + 4 * kRows * kColumns - 1);
  CHECK(fault_of({"show", path}, {path, "cut off"}) == "");
}

TEST_CASE("a list of tensors comes as JSON and CSV, and an empty one is no error") {
  const std::string file = data_file("corpus/good/stored.npz");
  CHECK(output_of({"show", file, "--json"}) ==
        R"({"schema":1,"command":"show","tensors":[{"name":"x","dtype":"float32","shape":[2,5],)"
        R"("bytes":40},{"name":"gamma","dtype":"float32","shape":[5],"bytes":20},)"
        R"({"name":"beta","dtype":"float32","shape":[5],"bytes":20}],)"
        R"("summary":{"tensors":3,"bytes":80}})"
        "\n");
  CHECK(output_of({"show", file, "--csv"}) ==
        "name,dtype,shape,bytes\n"
        "x,float32,\"(2, 5)\",40\n"
        "gamma,float32,(5),20\n"
        "beta,float32,(5),20\n");
  const Stream empty = pipe_of(std::string("\2\0\0\0\0\0\0\0{}", 10));
  CHECK(output_of({"show"}, empty) == "no tensors\n");
  CHECK(output_of("show --json"_w, empty) ==
        R"({"schema":1,"command":"show","tensors":[],"summary":{"tensors":0,"bytes":0}})"
        "\n");
  CHECK(output_of("show --csv"_w, empty) == "name,dtype,shape,bytes\n");
  CHECK(fault_of({"show", data_file("sample.npy"), "--json"},
                 {"--json", "sample.npy is one tensor", "hint: lnorm stats "}) == "");
  CHECK(fault_of({"show", file, "--json", "--csv"}, "--json --csv"_w) == "");
  CHECK(fault_of({"show", file, "--csv", "--precision", "2"},
                 {"--precision has no effect beside --csv"}) == "");
}
