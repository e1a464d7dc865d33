#include <array>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/files.hpp"
#include "support/process.hpp"

// The dtypes of 8 bits: written, saturating and scaled or not, and read in every format that has them.

namespace {

using namespace support;
using Words = std::vector<std::string>;

// Of [-1, 1] by the eps 0, whose xhat it is.
std::string json_of(const Words& options, const std::string& x = "[-1,1]") {
  Words words{"--eps", "0", "--to", "json"};
  words.insert(words.end(), options.begin(), options.end());
  return output_of(words, pipe_of(x));
}

std::string fault(Words words, const Words& expected, const std::string& x = "[-1,1]") {
  return refusal_fault(run(words, pipe_of(x)), expected);
}

}  // namespace

TEST_CASE("results are rounded to float8 once, ties to even") {
  const Words e4m3{"--dtype", "float8_e4m3fn", "--bias"};
  const Words e5m2{"--dtype", "float8_e5m2", "--bias"};
  const auto with_bias = [](Words words, const std::string& bias) {
    words.insert(words.end(), {bias, "--weight", "0"});
    return json_of(words);
  };
  CHECK(with_bias(e4m3, "[1.0625, 1.1875]") == "[1.0,1.2]\n");
  CHECK(with_bias(e4m3, "[1.0625000000000002, -0.0009765625]") == "[1.1,-0.0]\n");
  CHECK(with_bias(e4m3, "[464, -464.00000000000006]") == "[450.0,NaN]\n");
  CHECK(with_bias(e5m2, "[1.125, 1.375]") == "[1.0,1.5]\n");
  CHECK(with_bias(e5m2, "[61439.99999999999, -61440]") == "[60000.0,-Infinity]\n");
}

TEST_CASE("with --saturate a float8 takes what is beyond the greatest number for that") {
  for (const auto& [dtype, beyond, most] : std::vector<std::array<std::string, 3>>{
           {"float8_e4m3fn", "NaN", "450.0"}, {"float8_e5m2", "Infinity", "60000.0"}}) {
    CAPTURE(dtype);
    const Words large{"--dtype", dtype, "--weight", "1e300", "--bias", "[1e300, 1]"};
    Words saturating = large;
    saturating.push_back("--saturate");
    CHECK(json_of(large) == "[0.0," + beyond + "]\n");
    CHECK(json_of(saturating) == "[0.0," + most + "]\n");
    // A row that is not finite stays NaN.
    CHECK(json_of(saturating, "[-Infinity,1]") == "[NaN,NaN]\n");
    CHECK(output_of({"softmax", "--dtype", dtype, "--output-scale", "1e9", "--saturate"},
                    pipe_of("[1,1]")) == "[" + most + "," + most + "]\n");
  }
}

TEST_CASE("with --output-scale a factor multiplies the result before it is rounded") {
  const Words e4m3{"--dtype", "float8_e4m3fn", "--output-scale"};
  const auto scaled = [&](const std::string& scale, const Words& more = {}) {
    Words words = e4m3;
    words.push_back(scale);
    words.insert(words.end(), more.begin(), more.end());
    return json_of(words);
  };
  CHECK(scaled("20") == "[-20.0,20.0]\n");
  CHECK(scaled("-1.0625", {"--bias", "0"}) == "[1.0,-1.0]\n");
  CHECK(scaled("0") == "[0.0,0.0]\n");
  // Not rounded before: 1.0625 would be 1, and 300 * 1 is 288 or 320, 300 * 1.0625 = 318.75.
  CHECK(scaled("300", {"--weight", "1.0625"}) == "[-320.0,320.0]\n");
  CHECK(scaled("1e-300", {"--weight", "1e300"}) == "[-1.0,1.0]\n");
  CHECK(scaled("1e300", {"--weight", "[1e-300, 1e-320]"}) == "[-1.0,0.0]\n");
  CHECK(output_of({"softmax", "--dtype", "float8_e5m2", "--output-scale", "14"},
                  pipe_of("[1,1]")) == "[7.0,7.0]\n");
}

TEST_CASE("what is for float8 is refused for other dtypes") {
  for (const Words& option : {Words{"--saturate"}, Words{"--output-scale", "2"}}) {
    for (const std::string command : {"apply", "softmax"}) {
      Words words{command};
      words.insert(words.end(), option.begin(), option.end());
      CHECK(fault(words, {option[0] + " has no effect: it is for float8, and the output is float64",
                          "hint: --dtype float8_e4m3fn"}) == "");
      words.insert(words.end(), {"--dtype", "float16"});
      CHECK(fault(words, {option[0] + " has no effect", "float16"}) == "");
    }
    // The input's dtype may be one.
    const std::string x = R"({"shape": [2], "data": [-1, 1], "dtype": "float8_e5m2"})";
    CHECK(run(option, pipe_of(x)).status == 0);
  }
  for (const std::string scale : {"inf", "nan", "1e400", "x"}) {
    CHECK(fault({"--dtype", "float8_e5m2", "--output-scale", scale},
                {"--output-scale: '" + scale + "' is not "}) == "");
  }
  CHECK(fault({"--dtype", "float8_e4m3", "--saturate"}, {"--dtype: 'float8_e4m3' is not one of"}) ==
        "");
}

TEST_CASE("float8 goes through files and pipes") {
  const TempDir at;
  const std::string x = data_file("sample.npy");
  for (const std::string dtype : {"float8_e4m3fn", "float8_e5m2"}) {
    CAPTURE(dtype);
    const std::string name = dtype == "float8_e5m2" ? "F8_E5M2" : "F8_E4M3";
    // Without a word of the format: safetensors, which say what it is.
    const std::string y = output_of({x, "--dtype", dtype});
    CHECK(y.find(R"("sample":{"dtype":")" + name + R"(","shape":[2,3,4])") != std::string::npos);
    const std::string shown = output_of({x, "--dtype", dtype, "--to", "text"});
    CHECK(shown.ends_with("dtype=torch." + dtype + ")\n"));
    CHECK(output_of({"show", "-:sample"}, pipe_of(y)) == shown);
    CHECK(output_of({"--eps", "0", "--to", "text"}, pipe_of(y)).ends_with(dtype + ")\n"));
    CHECK(output_of({"compare", "-", x, "--atol", "10"}, pipe_of(y)).find(dtype) !=
          std::string::npos);
    CHECK(output_of({"stats", "-", "--json"}, pipe_of(y)).find(dtype) != std::string::npos);
    // JSON has numbers that read back.
    const std::string json = output_of({x, "--dtype", dtype, "--to", "json"});
    const std::string described =
        R"({"shape":[2,3,4],"dtype":")" + dtype + R"(","data":)" + json + "}";
    CHECK(output_of({"show"}, pipe_of(described)) == shown);
    // .npy and .npz have bytes without a meaning.
    for (const std::string file : {"y.npy", "y.npz"}) {
      output_of({x, "--dtype", dtype, "-o", at / file});
      CHECK(refusal_fault(run({at / file}), {"'|V1' is a byte of no known meaning",
                                             "hint: --as float8_e4m3fn reads them so"}) == "");
      const std::string member = file == "y.npz" ? ":sample" : "";
      CHECK(output_of({"show", at / (file + member), "--as", dtype}) == shown);
      CHECK(run({"stats", at / (file + member), "--as", dtype}).status == 0);
      CHECK(refusal_fault(run({at / file, "--as", "bfloat16"}), {"'|V1'"}) == "");
    }
    CHECK(run({"compare", at / "y.npy", at / "y.npy", "--as", dtype}).status == 0);
    CHECK(refusal_fault(run({x, "--as", dtype}),
                        {"is float32, found --as " + dtype, "of dtype V1"}) == "");
  }
  CHECK(output_of({"show", data_file("torch/float8_e5m2.pt:number")}) ==
        "tensor(0.5000, dtype=torch.float8_e5m2)\n");
  CHECK(fault({"--dtype", "float8_e5m2"}, {":1:54: [1] is '500'"},
              R"({"shape": [2], "dtype": "float8_e4m3fn", "data": [1, 500]})") == "");
}

TEST_CASE("several tensors go to float8 together") {
  const TempDir at;
  write_file(at / "x.json", R"({"a": [1, 2, 4], "b": [3, 3, 9]})");
  output_of({at / "x.json:*", "--dtype", "float8_e4m3fn", "--output-scale", "100", "--saturate",
             "-o", at / "y.safetensors"});
  CHECK(output_of({"show", at / "y.safetensors"}) ==
        "a  float8_e4m3fn  (3)  3 B\n"
        "b  float8_e4m3fn  (3)  3 B\n"
        "2 tensors, 6 B\n");
  output_of({at / "x.json:*", "--dtype", "float8_e4m3fn", "-o", at / "y/"});
  CHECK(list_directory(at / "y") == Words{"a.safetensors", "b.safetensors"});
  // One scale for all, with weights of their own.
  CHECK(output_of({at / "x.json:*", "--weight", at / "x.json:{}", "--dtype", "float8_e5m2",
                   "--output-scale", "0.5", "--to", "json"}) ==
        output_of({at / "x.json:*", "--weight", at / "x.json:{}", "--dtype", "float8_e5m2",
                   "--output-scale", "0.5", "--kernel", "reference", "--to", "json"}));
}
