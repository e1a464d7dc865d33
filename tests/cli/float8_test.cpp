#include <array>
#include <cmath>

#include "lnorm/core/text.hpp"
#include "support/commands.hpp"

// The dtypes of 8 bits: written, saturating and scaled or not, and read in every format that has them.

namespace {

using namespace support;

// Of [-1, 1] by the eps 0, whose xhat it is.
std::string json_of(const Words& options, const std::string& x = "[-1,1]") {
  return output_of("--eps 0 --to json"_w + options, pipe_of(x));
}

std::string fault(Words words, const Words& expected, const std::string& x = "[-1,1]") {
  return fault_of(words, expected, pipe_of(x));
}

}  // namespace

TEST_CASE("results are rounded to float8 once, ties to even") {
  const Words e4m3 = "--dtype float8_e4m3fn --bias"_w;
  const Words e5m2 = "--dtype float8_e5m2 --bias"_w;
  const auto with_bias = [](Words words, const std::string& bias) {
    words += {bias, "--weight", "0"};
    return json_of(words);
  };
  CHECK(with_bias(e4m3, "[1.0625, 1.1875]") == "[1.0,1.2]\n");
  CHECK(with_bias(e4m3, "[1.0625000000000002, -0.0009765625]") == "[1.1,-0.0]\n");
  CHECK(with_bias(e4m3, "[464, -464.00000000000006]") == "[450.0,NaN]\n");
  CHECK(with_bias(e5m2, "[1.125, 1.375]") == "[1.0,1.5]\n");
  CHECK(with_bias(e5m2, "[61439.99999999999, -61440]") == "[60000.0,-Infinity]\n");
  // NaN has the sign of the value, in a row of one element as well.
  for (const std::string x : {"[[3], [4]]", "[[3, 3]]"}) {
    for (const std::string kernel : {"portable", "reference"}) {
      CAPTURE(x, kernel);
      CHECK(output_of(e4m3 + "-1000 --to raw --kernel"_w + Words{kernel}, pipe_of(x)) ==
            "\xff\xff");
    }
  }
}

TEST_CASE("what is beyond a float8 agrees with the number that rounds to it") {
  const Workplace at;
  at.write("x.json", "[1e6, -1e6, 449, -465, 61440, -241, 1, 0.001, -0.0015]");
  at.write("inside.json", "[448, 464, 57344, 240]");
  for (const std::string dtype : {"float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz"}) {
    CAPTURE(dtype);
    at.output({"convert", "x.json", "--dtype", dtype, "-o", "x.safetensors"});
    for (const Words& criteria : {"--max-ulp 0.5"_w, Words{}}) {
      CHECK(at.run("compare x.safetensors x.json"_w + criteria).status == 0);
    }
    at.output({"convert", "[NaN, NaN, NaN, NaN]", "--dtype", dtype, "-o", "nan.safetensors"});
    const Outcome lost = at.run("compare nan.safetensors inside.json --json"_w);
    // 57344 is beyond the two dtypes without infinities, and 464 and 448 are beyond the one that ends at 240.
    const std::string agreeing = dtype == "float8_e5m2"     ? "0"
                                 : dtype == "float8_e4m3fn" ? "1"
                                                            : "3";
    CHECK(contains(lost.out, "\"rounded_to_infinity\":" + agreeing));
  }
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

TEST_CASE("check says where a float8 saturates that should not, and the other way about") {
  const Workplace at;
  at.shell("lnorm inputs --shape 16,64 -o cases && cp cases/ordinary.x.npy x.npy");
  for (const Words& dtype : {"--dtype float8_e4m3fn"_w, "--dtype float8_e5m2 --output-scale 200"_w,
                             "--dtype float8_e4m3fnuz"_w}) {
    const Words weight = "--weight 300"_w;
    const Words scale(dtype.begin() + 2, dtype.end());
    at.output("x.npy -o y.safetensors"_w + weight + dtype);
    at.output("x.npy -o s.safetensors --saturate"_w + weight + dtype);
    at.output("x.npy -o rms.safetensors --rms"_w + weight + dtype);
    const auto judged = [&](const Words& words) {
      return at.run(Words{"check", "x.npy"} + words + weight + scale).out;
    };
    CAPTURE(dtype[1]);
    CHECK(contains(judged("y.safetensors"_w), "correctly rounded"));
    CHECK(contains(judged("s.safetensors --saturate"_w), "correctly rounded"));
    CHECK(contains(judged("s.safetensors"_w), "(saturated; --saturate): every element"));
    CHECK(contains(judged("y.safetensors --saturate"_w),
                   "(not-saturated; without --saturate): every element"));
    // NaN and infinity are what another formula gives, too.
    CHECK(contains(judged("rms.safetensors"_w), "(rms; --rms): every element"));
  }
}

// A float32 kernel whose result is a step beside the exact one, where dtypes end.
TEST_CASE("either side of the end of a float8 is within rounding") {
  const Workplace at;
  at.write("x.json", "[[-1, 1, -3, 3]]");  // xhat is x / sqrt(5)
  for (const auto& [dtype, end] : std::vector<std::pair<std::string, double>>{
           {"float8_e4m3fn", 464}, {"float8_e5m2", 61440}, {"float8_e4m3fnuz", 248}}) {
    for (const double factor : {1 - 0x1p-26, 1 + 0x1p-26}) {
      const std::string weight = lnorm::concat(end / 3 * std::sqrt(5.0) * factor);
      const std::string other = lnorm::concat(end / 3 * std::sqrt(5.0) / factor);
      CAPTURE(dtype, factor);
      at.output(
          {"x.json", "--eps", "0", "--weight", other, "--dtype", dtype, "-o", "y.safetensors"});
      CHECK(at.run({"check", "x.json", "y.safetensors", "--eps", "0", "--weight", weight,
                    "--arithmetic", "float32"})
                .status == 0);
    }
  }
}

TEST_CASE("with --output-scale a factor multiplies the result before it is rounded") {
  const Words e4m3 = "--dtype float8_e4m3fn --output-scale"_w;
  const auto scaled = [&](const std::string& scale, const Words& more = {}) {
    Words words = e4m3;
    words.push_back(scale);
    words += more;
    return json_of(words);
  };
  CHECK(scaled("20") == "[-20.0,20.0]\n");
  CHECK(scaled("-1.0625", "--bias 0"_w) == "[1.0,-1.0]\n");
  CHECK(scaled("0") == "[0.0,0.0]\n");
  // Not rounded before: 1.0625 would be 1, and 300 * 1 is 288 or 320, 300 * 1.0625 = 318.75.
  CHECK(scaled("300", "--weight 1.0625"_w) == "[-320.0,320.0]\n");
  CHECK(scaled("1e-300", "--weight 1e300"_w) == "[-1.0,1.0]\n");
  CHECK(scaled("1e300", {"--weight", "[1e-300, 1e-320]"}) == "[-1.0,0.0]\n");
  CHECK(output_of("softmax --dtype float8_e5m2 --output-scale 14"_w, pipe_of("[1,1]")) ==
        "[7.0,7.0]\n");
}

TEST_CASE("what is for float8 is refused for other dtypes") {
  for (const Words& option : {Words{"--saturate"}, "--output-scale 2"_w}) {
    for (const std::string command : {"apply", "softmax"}) {
      Words words{command};
      words += option;
      CHECK(fault(words, {option[0] + " has no effect: it is for float8, and the output is float64",
                          "hint: --dtype float8_e4m3fn"}) == "");
      words += "--dtype float16"_w;
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
  CHECK(fault("--dtype float8_e4m3 --saturate"_w, {"--dtype: 'float8_e4m3' is not one of"}) == "");
}

TEST_CASE("float8 goes through files and pipes") {
  const Workplace at;
  const std::string x = data_file("sample.npy");
  for (const std::string dtype : {"float8_e4m3fn", "float8_e5m2"}) {
    CAPTURE(dtype);
    const std::string name = dtype == "float8_e5m2" ? "F8_E5M2" : "F8_E4M3";
    // Without a word of the format: safetensors, which say what it is.
    const std::string y = output_of({x, "--dtype", dtype});
    CHECK(contains(y, R"("sample":{"dtype":")" + name + R"(","shape":[2,3,4])"));
    const std::string shown = output_of({x, "--dtype", dtype, "--to", "text"});
    CHECK(shown.ends_with("dtype=torch." + dtype + ")\n"));
    CHECK(output_of("show -:sample"_w, pipe_of(y)) == shown);
    CHECK(output_of("--eps 0 --to text"_w, pipe_of(y)).ends_with(dtype + ")\n"));
    CHECK(contains(output_of({"compare", "-", x, "--atol", "10"}, pipe_of(y)), dtype));
    CHECK(contains(output_of("stats - --json"_w, pipe_of(y)), dtype));
    // JSON has numbers that read back.
    const std::string json = output_of({x, "--dtype", dtype, "--to", "json"});
    const std::string described =
        R"({"shape":[2,3,4],"dtype":")" + dtype + R"(","data":)" + json + "}";
    CHECK(output_of({"show"}, pipe_of(described)) == shown);
    // .npy and .npz have bytes without a meaning.
    for (const std::string file : {"y.npy", "y.npz"}) {
      at.output({x, "--dtype", dtype, "-o", file});
      CHECK(at.fault({file}, {"'|V1' is a byte of no known meaning",
                              "hint: --as float8_e4m3fn reads them so"}) == "");
      const std::string member = file == "y.npz" ? ":sample" : "";
      CHECK(at.output({"show", std::string(file + member), "--as", dtype}) == shown);
      CHECK(at.run({"stats", std::string(file + member), "--as", dtype}).status == 0);
      CHECK(at.fault({file, "--as", "bfloat16"}, {"'|V1'"}) == "");
    }
    CHECK(at.run({"compare", "y.npy", "y.npy", "--as", dtype}).status == 0);
    CHECK(fault({x, "--as", dtype}, {"is float32, which --as " + dtype + " does not change"}) ==
          "");
  }
  CHECK(output_of({"show", data_file("torch/float8_e5m2.pt:number")}) ==
        "tensor(0.5000, dtype=torch.float8_e5m2)\n");
  CHECK(fault("--dtype float8_e5m2"_w, {":1:54: [1] is '500'"},
              R"({"shape": [2], "dtype": "float8_e4m3fn", "data": [1, 500]})") == "");
}

TEST_CASE("several tensors go to float8 together") {
  const Workplace at;
  at.write("x.json", R"({"a": [1, 2, 4], "b": [3, 3, 9]})");
  at.output("x.json:* --dtype float8_e4m3fn --output-scale 100 --saturate -o y.safetensors"_w);
  CHECK(at.output("show y.safetensors"_w) ==
        "a  float8_e4m3fn  (3)  3 B\n"
        "b  float8_e4m3fn  (3)  3 B\n"
        "2 tensors, 6 B\n");
  at.output("x.json:* --dtype float8_e4m3fn -o y/"_w);
  CHECK(list_directory(at / "y") == Words{"a.safetensors", "b.safetensors"});
  // One scale for all, with weights of their own.
  CHECK(
      at.output("x.json:* --weight x.json:{} --dtype float8_e5m2 --output-scale 0.5 --to json"_w) ==
      at.output({"x.json:*", "--weight", "x.json:{}", "--dtype", "float8_e5m2", "--output-scale",
                 "0.5", "--kernel", "reference", "--to", "json"}));
}
