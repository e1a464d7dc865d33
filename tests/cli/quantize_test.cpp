#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include "support/commands.hpp"
#include "support/elements.hpp"
#include "support/json.hpp"
#include "support/pace.hpp"

// Quantized outputs and their scales: of real kernels, and of what the program itself computes by other options.

namespace {

using namespace support;
using nlohmann::json;

std::string of(const Workplace& files, const std::string& command) {
  const Outcome found = files.shell("lnorm check " + command);
  return std::to_string(found.status) + ' ' + found.out + found.err;
}

// A kernel's file, with x, w, q and scale.
std::string of_kernel(const Workplace& files, const std::string& name, const std::string& options) {
  const std::string file = LNORM_DATA_DIR "/quantized/" + name + ".safetensors:";
  return of(files, file + "x " + file + "q --weight " + file + "w --rms --eps 1e-6 --quantize " +
                       options +
                       (contains(options, "static") ? " --given-scale " : " --actual-scale ") +
                       file + "scale");
}

}  // namespace

TEST_CASE("quantized outputs of an H100 are right, but for those that are rounded twice") {
  const Workplace files;
  for (const auto& [name, options] : std::vector<std::pair<std::string, std::string>>{
           {"fp8-row-128-bf16", "row --scale-min 1/229376"},
           {"int8-row-128-f16", "row"},
           {"fp8-group64-ue8m0-128-bf16", "group:64 --scale-power-of-two"},
           {"fp8-static-128-bf16", "static"}}) {
    CAPTURE(name);
    const std::string said = of_kernel(files, name, options);
    CAPTURE(said);
    CHECK(said.front() == '0');
    CHECK(!contains(said, "cause"));
  }
  const std::string said = of_kernel(files, "fp8-group64-of-rounded-128-f16", "group:64");
  CAPTURE(said);
  CHECK(said.front() == '1');
  CHECK(contains(said, "y is rounded to float16 before it is divided (rounded-y; --round y)"));
}

TEST_CASE("a mistake of some rows is none of all") {
  const Workplace files;
  json x = json::array();
  for (int r = 0; r < 16; ++r) {
    json row = json::array();
    for (int i = 0; i < 32; ++i) row.push_back((r * 37 + i * i * 11 + r * i) % 101 - 50.5);
    x.push_back(row);
  }
  files.write("x.json", x.dump());
  files.output("convert x.json --dtype float32 -o x.npy"_w);
  files.shell_output("lnorm x.npy --rms --quantize row --dtype int8 -o q.npy --save-scale s.npy");
  files.output("convert q.npy -o q.json"_w);
  const json q = json::parse(files.read("q.json"));
  const auto found = [&](const json& of_kernel) {
    files.write("other.json", of_kernel.dump());
    return of(files, "x.npy other.json --as int8 --rms --quantize row --actual-scale s.npy");
  };
  json last = q;
  for (json& one : last.back()) one = std::min(127, one.get<int>() + 1);
  CHECK(contains(found(last), "no known mistake"));
  json all = q;
  for (json& row : all) {
    for (json& one : row) one = std::min(127, one.get<int>() + 1);
  }
  CHECK(contains(found(all), "zero-point"));
  const auto with = [&](const std::function<void(json & row, int number)>& change) {
    json changed = q;
    for (int r = 0; r < 16; ++r) change(changed[static_cast<std::size_t>(r)], r);
    return found(changed);
  };
  const auto end_at = [](json& row, std::size_t written) {
    for (std::size_t i = written; i < row.size(); ++i) row[i] = 0;
  };
  const std::string middle =
      with([&](json& row, int r) { end_at(row, r == 3 || r == 7 ? 0 : 32); });
  CHECK(contains(middle, "(unwritten-rows)"));
  CHECK(!contains(middle, "unwritten-tail"));
  const std::string last_rows = with([&](json& row, int r) { end_at(row, r > 12 ? 0 : 32); });
  CHECK(contains(last_rows, "(unwritten-rows)"));
  CHECK(contains(last_rows, "the same on this input: unwritten-tail"));
  CHECK(contains(with([&](json& row, int) { end_at(row, 24); }), "(unwritten-tail)"));
  // Elsewhere another mistake is made.
  const std::string two = with([&](json& row, int r) {
    end_at(row, 24);
    if (r == 9) row[5] = row[5].get<int>() / 2;
  });
  CHECK(contains(two, "no known mistake"));
  const std::string shifted =
      with([](json& row, int) { std::rotate(row.begin(), row.end() - 1, row.end()); });
  CHECK(contains(shifted, "(shifted-columns)"));
}

TEST_CASE("what is quantized otherwise than asked for is named") {
  struct Case {
    std::string made;   // by these options
    std::string asked;  // of these
    std::string id;     // empty: right
  };
  const std::vector<Case> cases{
      {"--quantize row --dtype int8", "--quantize row", ""},
      {"--quantize tensor --dtype int8", "--quantize row", "scale-of-tensor"},
      {"--quantize row --dtype int8 --qmax 128", "--quantize row", "qmax-128"},
      {"--quantize row --dtype float8_e4m3fn --qmax 240", "--quantize row", "qmax-240"},
      {"--quantize row --dtype float8_e4m3fn", "--quantize group:64", "scale-of-row"},
      {"--quantize group:128 --dtype float8_e4m3fn", "--quantize group:64", "group-128"},
      {"--quantize group:64 --dtype float8_e4m3fn", "--quantize group:128", "group-64"},
      {"--quantize group:32 --dtype int8", "--quantize row", "group-32"},
      {"--quantize group:32 --dtype int8", "--quantize tensor", "group-32"},
      {"--quantize row --dtype int8 --round y", "--quantize row", "rounded-y"},
      {"--quantize row --dtype int8", "--quantize row --round y", "unrounded-y"},
      {"--quantize row --dtype float8_e5m2", "--quantize row --scale-min 1/1000", "no-scale-min"},
      {"--quantize row --dtype float8_e5m2", "--quantize row --amax-max 1", "no-scale-max"},
      {"--quantize row --dtype float8_e4m3fn", "--quantize row --scale-power-of-two",
       "scale-not-power-of-two"},
      {"--quantize row --dtype float8_e4m3fn --scale-power-of-two --qmax 896",
       "--quantize row --scale-power-of-two", "scale-power-of-two-down"},
      {"--quantize static --given-scale 1 --dtype int8", "--quantize row", "no-scale"},
      {"--quantize tensor --dtype float8_e4m3fnuz", "--quantize tensor", ""},
      {"--quantize tensor --dtype int8 --qmax 128", "--quantize tensor", "qmax-128"},
      {"--quantize tensor --dtype int8", "--quantize tensor --amax-max 1", "no-scale-max"},
      {"--quantize row --dtype int8", "--quantize tensor", "scale-of-row"},
  };
  const Workplace files;
  files.shell("lnorm inputs --shape 8,512 --dtype bfloat16 -o cases");
  const std::string given =
      " --weight cases/ordinary.weight.safetensors --bias cases/ordinary.bias.safetensors ";
  int number = 0;
  for (const Case& c : cases) {
    if (!takes(number++)) continue;
    CAPTURE(c.made, c.asked);
    const bool saves = !contains(c.made, "static");
    const Outcome made = files.shell("lnorm cases/ordinary.x.safetensors -o q.safetensors" + given +
                                     c.made + (saves ? " --save-scale s.safetensors" : ""));
    CHECK((made.out.empty() && made.err.empty()));
    // Of other groups there are other scales.
    const bool same =
        c.made.substr(0, c.made.find(" --dtype")) == c.asked.substr(0, c.asked.find(" --", 3));
    for (const bool has_scales : {false, true}) {
      if (has_scales && !same) continue;
      const std::string said =
          of(files, "cases/ordinary.x.safetensors q.safetensors" + given + c.asked +
                        (has_scales ? " --actual-scale s.safetensors" : ""));
      CAPTURE(has_scales, said);
      CHECK(said.front() == (c.id.empty() ? '0' : '1'));
      CHECK(contains(said, "cause: ") != c.id.empty());
      CHECK((c.id.empty() || contains(said, '(' + c.id)));
    }
  }
}

TEST_CASE("q that another norm gives names it, and a few elements near a tie name none") {
  struct Case {
    std::string made;
    std::string asked;
    std::string id;
  };
  const std::string weight = " --weight cases/ordinary.weight.safetensors";
  const std::string bias = " --bias cases/ordinary.bias.safetensors";
  const std::string residual = " --residual cases/different-rows.x.safetensors";
  const std::string both = weight + bias;
  const std::vector<Case> cases{
      {both + " --unbiased", both, "(ddof-1; --unbiased)"},
      {both + " --rms", both, "(rms; --rms)"},
      {both + " --eps 1e-3", both, ""},
      {weight, both, "(no-bias; without --bias)"},
      {bias, both, "(no-weight; without --weight)"},
      {both + " --zero-centered-weight", both, "(weight-plus-one"},
      {both, both + residual, "(no-residual"},
      {both + " --groups 4 --rms", both + " --groups 4", "(rms; --rms)"},
  };
  const Workplace files;
  files.shell("lnorm inputs --shape 8,512 --dtype bfloat16 -o cases");
  const std::string x = "cases/ordinary.x.safetensors ";
  int number = 0;
  for (const Case& c : cases) {
    for (const std::string by : {"row", "group:128", "tensor", "static"}) {
      const bool is_group_norm = contains(c.asked, "--groups");
      if (is_group_norm && by != "static" && by != "tensor") continue;
      if (!takes(number++, 2)) continue;
      CAPTURE(c.made, c.asked, by);
      const bool is_static = by == "static";
      const std::string quantize =
          " --quantize " + by + (is_static ? " --given-scale 0.015625" : "") + " --dtype int8";
      const Outcome made = files.shell("lnorm " + x + "-o q.safetensors" + c.made + quantize +
                                       (is_static ? "" : " --save-scale s.safetensors"));
      REQUIRE((made.out.empty() && made.err.empty()));
      const std::string said =
          of(files, x + "q.safetensors" + c.asked + quantize.substr(0, quantize.find(" --dtype")) +
                        (is_static ? "" : " --actual-scale s.safetensors"));
      CAPTURE(said);
      CHECK(said.front() == '1');
      CHECK(contains(said, "cause: ") != c.id.empty());
      CHECK(contains(said, c.id));
    }
  }
}

TEST_CASE("a row of zeros hides no other norm") {
  const Workplace files;
  std::string rows;
  for (int r = 0; r < 12; ++r) {
    rows += r == 0 ? "[[" : ", [";
    for (int i = 0; i < 24; ++i) {
      rows += (i == 0 ? "" : ", ") + std::to_string(r == 5 ? 0 : (r * 31 + i * i * 7 + r * i) % 43);
    }
    rows += "]";
  }
  files.write("x.json", rows + "]");
  files.output("x.json --unbiased --quantize row --dtype int8 --save-scale s.npy -o q.npy"_w);
  const std::string said = of(files, "x.json q.npy --quantize row --actual-scale s.npy");
  CAPTURE(said);
  CHECK(contains(said, "(ddof-1; --unbiased)"));
}

TEST_CASE("a scale of a tensor is right whose row was summed by a loop") {
  const Workplace files;
  constexpr std::int64_t kLength = 65536;
  for (int seed = 0; seed < 4; ++seed) {
    auto x = normals<float>(kLength, static_cast<std::uint64_t>(seed));
    for (float& one : x) one = std::nearbyint(one * 256) / 256;
    float squares = 0;
    for (const float one : x) squares += one * one;
    const float rstd = 1.0F / std::sqrt(squares / kLength + 1e-5F);
    float amax = 0;
    for (const float one : x) amax = std::max(amax, std::fabs(one * rstd));
    const float scale = amax / 127;
    std::vector<std::int8_t> q;
    for (const float one : x) {
      q.push_back(static_cast<std::int8_t>(std::nearbyint(one * rstd / scale)));
    }
    write_file(files / "x.npy", npy_of<float>({1, kLength}, x));
    write_file(files / "q.npy", npy_of<std::int8_t>({1, kLength}, q));
    write_file(files / "s.npy", npy_of<float>({1}, {scale}));
    const std::string said = of(files, "x.npy q.npy --rms --quantize tensor --actual-scale s.npy");
    CAPTURE(seed, said);
    CHECK(said.front() == '0');
    CHECK(contains(said, "as a loop's"));
  }
}

TEST_CASE("a row of zeros hides no mistake of the norm, and what one row has is no cause of all") {
  const Workplace files;
  constexpr std::int64_t kRows = 40;
  constexpr std::int64_t kLength = 128;
  auto x = normals<float>(kRows * kLength, 7);
  std::fill_n(x.begin() + 3 * kLength, kLength, 0.0F);
  write_file(files / "x.npy", npy_of<float>({kRows, kLength}, x));
  files.shell("lnorm x.npy --rms --quantize row --dtype int8 -o rms.npy");
  CHECK(contains(of(files, "x.npy rms.npy --quantize row"), "(rms; --rms)"));
  files.shell("lnorm x.npy --quantize row --dtype int8 -o row.npy");
  files.shell("lnorm x.npy --quantize tensor --dtype int8 -o tensor.npy");
  std::string q = read_file(files / "row.npy");
  const std::size_t at = q.size() - static_cast<std::size_t>((kRows - 9) * kLength);
  q.replace(at, kLength, read_file(files / "tensor.npy").substr(at, kLength));
  write_file(files / "q.npy", q);
  const std::string said = of(files, "x.npy q.npy --quantize row");
  CAPTURE(said);
  CHECK(said.front() == '1');
  CHECK(!contains(said, "cause"));
}

TEST_CASE("y rounded first, divided by a power of two, is one number") {
  const Workplace files;
  auto x = normals<float>(9 * 256, 1);
  for (float& one : x) one = one / 2 + 4;
  write_file(files / "x.npy", npy_of<float>({9, 256}, x));
  files.output("convert x.npy --dtype bfloat16 -o x.safetensors"_w);
  const std::string by = " --rms --quantize static --given-scale 0.015625";
  files.shell("lnorm x.safetensors --unbiased --dtype int8 -o q.npy" + by);
  CHECK(contains(of(files, "x.safetensors q.npy" + by), "(ddof-1; --unbiased)"));
  CHECK(contains(of(files, "x.safetensors q.npy --round y" + by), "beyond rounding"));
  files.shell("lnorm x.safetensors --round y --dtype int8 -o q.npy" + by);
  CHECK(of(files, "x.safetensors q.npy --round y" + by).front() == '0');
  CHECK(contains(of(files, "x.safetensors q.npy" + by), "(rounded-y; --round y)"));
}

TEST_CASE("zeros may have any scale, and an element is told as what it stands for") {
  const Workplace files;
  files.write("x.json", "[[0, 0, 0, 0], [1, 2, -3, 4]]");
  files.shell("lnorm x.json --dtype int8 --rms --quantize row -o q.npy --save-scale s.npy");
  const std::string saved = read_file(files / "s.npy");
  for (const float scale : {0.0F, 0.5F, 3.0F}) {
    std::string other = saved;
    std::memcpy(other.data() + other.size() - 2 * sizeof scale, &scale, sizeof scale);
    write_file(files / "s.npy", other);
    CHECK(of(files, "x.json q.npy --rms --quantize row --actual-scale s.npy").front() == '0');
  }
  write_file(files / "z.npy", npy_of<float>({2, 4}, std::vector<float>(8)));
  write_file(files / "zq.npy", npy_of<std::int8_t>({2, 4}, std::vector<std::int8_t>(8)));
  write_file(files / "one.npy", npy_of<float>({1}, {1}));
  CHECK(of(files, "z.npy zq.npy --quantize tensor --actual-scale one.npy --scale-min 0.001")
            .front() == '0');
  std::string q = read_file(files / "q.npy");
  q[q.size() - 4] = 50;
  write_file(files / "q.npy", q);
  const std::string said = of(files, "x.json q.npy --rms --quantize row");
  CAPTURE(said);
  CHECK(contains(said, "at (1, 0): 0.5"));
}

TEST_CASE("a scale of what is not finite is none, and of zeros is 1") {
  const Workplace files;
  const std::string x = "[[1, 2, Infinity, 3], [0, 0, 0, 0], [1, -1, 2, -2]]";
  CHECK(files.output("--rms --quantize row --dtype int8 --save-scale s.json --to json"_w,
                     pipe_of(x)) == "[[0,0,0,0],[0,0,0,0],[63,-63,127,-127]]\n");
  CHECK(read_file(files / "s.json") == "[[NaN],[1.0],[0.00995991]]\n");
  CHECK(
      files.output(
          "--rms --quantize row --dtype float8_e5m2 --scale-min 0.5 --save-scale s.json --to json"_w,
          pipe_of(x)) == "[[NaN,NaN,NaN,NaN],[0.0,0.0,0.0,0.0],[1.2,-1.2,2.5,-2.5]]\n");
  CHECK(read_file(files / "s.json") == "[[NaN],[0.5],[0.5]]\n");
  // Of a tensor all rows lose theirs.
  CHECK(files.output("--rms --quantize tensor --dtype int8 --save-scale s.json --to json"_w,
                     pipe_of(x)) == "[[0,0,0,0],[0,0,0,0],[0,0,0,0]]\n");
  CHECK(read_file(files / "s.json") == "[NaN]\n");
  // So is what a given scale divides, and of int8 it is 0.
  CHECK(files.output("--rms --quantize static --given-scale 0.5 --dtype int8 --to json"_w,
                     pipe_of(x)) == "[[0,0,0,0],[0,0,0,0],[1,-1,3,-3]]\n");
  CHECK(
      files.output("--rms --quantize static --given-scale 0.5 --dtype float8_e4m3fnuz --to json"_w,
                   pipe_of("[[1, NaN]]")) == "[[NaN,NaN]]\n");
  files.write("none.npy", npy_of<float>({4, 0}, {}));
  files.output("none.npy --quantize row --dtype int8 -o q.npy --save-scale s.npy"_w);
  CHECK(files.run("check none.npy q.npy --quantize row --actual-scale s.npy"_w).status == 2);
}

TEST_CASE("given statistics, groups and a residual go before a quantization") {
  const Workplace files;
  files.shell("lnorm inputs --shape 4,6,8 --axes 1,2 -o cases && cp cases/ordinary.x.npy x.npy");
  for (const std::string norm :
       {"--axes 0,2 --mean '[1,2,3,4,5,6]' --variance '[1,2,1,2,1,2]'", "--groups 3",
        "--axes 1,2 --residual x.npy",
        "--rms --weight cases/ordinary.weight.npy --zero-centered-weight --axes 1,2"}) {
    for (const std::string quantize : {"row", "group:2", "tensor"}) {
      CAPTURE(norm, quantize);
      std::string options = ' ' + norm;
      std::string command = "lnorm x.npy --dtype float64 -o y.safetensors" + options;
      options.append(" --quantize ").append(quantize);
      command.append(" && lnorm x.npy --dtype int8 -o q.safetensors --save-scale s.safetensors");
      const Outcome made = files.shell(command + options);
      CHECK((made.out.empty() && made.err.empty()));
      const std::string said =
          of(files, "x.npy q.safetensors" + options + " --actual-scale s.safetensors");
      CAPTURE(said);
      CHECK(said.front() == '0');
      CHECK(!contains(said, "differ"));
      // The largest of the whole is 127 times the largest scale, whatever the groups are.
      const json s =
          support::parsed_json(files.shell("lnorm convert s.safetensors --to json").out).flatten();
      const json y =
          support::parsed_json(files.shell("lnorm convert y.safetensors --to json").out).flatten();
      double scale = 0;
      double amax = 0;
      for (const json& one : s) scale = std::max(scale, one.get<double>());
      for (const json& one : y) amax = std::max(amax, std::fabs(one.get<double>()));
      CHECK(std::fabs(scale * 127 / amax - 1) < 1e-7);
    }
  }
}

TEST_CASE("the worst scale is named by its place in the scales' own shape") {
  const Workplace files;
  files.shell(
      "lnorm inputs --shape 6,4,8 -o cases && lnorm cases/ordinary.x.npy -o x.npy && lnorm "
      "x.npy --quantize tensor --dtype int8 -o q.npy --save-scale of_tensor.npy && lnorm x.npy "
      "--quantize group:4 --dtype int8 -o of_groups.npy --save-scale scales.npy");
  const auto worst = [&](const std::string& arguments, const std::string& change) {
    files.shell("lnorm convert " + change + " --to json >s.json");
    json scales = support::parsed_json(files.read("s.json"));
    scales = scales.flatten();
    for (auto& [at, scale] : scales.items()) {
      if (at == "/3/2/1" || at == "/0") scale = 1.25 * scale.get<double>();
    }
    files.write("s.json", scales.unflatten().dump());
    const json said = support::parsed_json(
        files.shell("lnorm check x.npy " + arguments + " --actual-scale s.json --json || true")
            .out);
    return said["tensors"][1]["worst_index"].dump();
  };
  CHECK(worst("q.npy --quantize tensor", "of_tensor.npy") == "[0]");
  CHECK(worst("of_groups.npy --quantize group:4", "scales.npy") == "[3,2,1]");
}

namespace {

// What lnorm mutants says of x.safetensors, by ids.
std::map<std::string, json> mutants_of(const Workplace& files, const std::string& options) {
  const Outcome found = files.shell("lnorm mutants x.safetensors " + options + " --json || true");
  CAPTURE(options, found.err);
  REQUIRE(!found.out.empty());
  std::map<std::string, json> mutants;
  const json report = support::parsed_json(found.out);
  for (const json& mutant : report.at("mutants")) mutants[mutant.at("id")] = mutant;
  return mutants;
}

}  // namespace

TEST_CASE("mutants computes what the program itself writes by other options") {
  struct Case {
    std::string asked;
    std::string id;
    std::string made;  // by these options in place of those
  };
  const std::string none;
  const std::vector<Case> cases{
      {"--quantize row --dtype int8", "qmax-128", "--quantize row --qmax 128"},
      {"--quantize row --dtype int8", "scale-of-tensor", "--quantize tensor"},
      {"--quantize row --dtype int8", "rounded-y", "--quantize row --round y"},
      {"--quantize row --dtype int8 --round y", "unrounded-y", "--quantize row"},
      {"--quantize row --dtype int8", "no-scale", "--quantize static --given-scale 1"},
      {"--quantize row --dtype int8", "amax-of-x", none},
      {"--quantize group:32 --dtype int8", "scale-of-row", "--quantize row"},
      {"--quantize group:32 --dtype int8", "group-64", "--quantize group:64"},
      {"--quantize group:32 --dtype int8", "group-16", "--quantize group:16"},
      {"--quantize row --dtype int8", "group-128", "--quantize group:128"},
      {"--quantize tensor --dtype int8", "group-128", "--quantize group:128"},
      {"--quantize group:32 --dtype float8_e4m3fn", "qmax-240", "--quantize group:32 --qmax 240"},
      {"--quantize row --dtype float8_e5m2 --scale-min 1/1000", "no-scale-min", "--quantize row"},
      {"--quantize row --dtype float8_e4m3fnuz --amax-max 1", "no-scale-max", "--quantize row"},
      {"--quantize row --dtype float8_e4m3fn --scale-power-of-two", "scale-not-power-of-two",
       "--quantize row"},
      {"--quantize row --dtype float8_e4m3fn --scale-power-of-two", "scale-power-of-two-down",
       "--quantize row --scale-power-of-two --qmax 896"},
      {"--quantize tensor --dtype int8", "qmax-128", "--quantize tensor --qmax 128"},
      {"--quantize tensor --dtype int8", "amax-of-xhat", "--given-scale xhat.json"},
      {"--quantize tensor --dtype int8", "amax-before-bias", "--given-scale before.json"},
      {"--quantize tensor --dtype int8", "amax-without-residual", "--given-scale alone.json"},
      {"--quantize static --given-scale 0.015625 --dtype float8_e4m3fn", "no-scale",
       "--quantize static --given-scale 1"},
      // The norm's own.
      {"--quantize row --dtype int8 --rms", "layer-norm", "--quantize row"},
      {"--quantize group:32 --dtype int8", "eps-1e-3", "--quantize group:32 --eps 1e-3"},
      {"--quantize tensor --dtype float8_e4m3fn", "ddof-1", "--quantize tensor --unbiased"},
      {"--quantize row --dtype int8 --round y", "no-division", none},
      {"--quantize static --given-scale 0.02 --dtype int8", "rms",
       "--quantize static --given-scale 0.02 --rms"},
  };
  const Workplace files;
  files.shell(
      "lnorm inputs --shape 8,512 --dtype bfloat16 -o cases && cd cases && "
      "lnorm ordinary.x.safetensors --rms -o ../x.safetensors && "
      "lnorm ordinary.x.safetensors --quantize row --dtype int8 -o q.npy && "
      "lnorm convert q.npy --dtype bfloat16 -o ../r.safetensors");
  const std::string weight = " --weight cases/ordinary.weight.safetensors";
  const std::string bias = " --bias cases/ordinary.bias.safetensors";
  const std::string residual = " --residual r.safetensors";
  const auto scale = [&](const std::string& name, const std::string& options) {
    files.shell("lnorm x.safetensors --quantize tensor --dtype int8 -o q.npy --save-scale " + name +
                ' ' + options);
  };
  scale("xhat.json", residual);
  scale("before.json", residual + weight);
  scale("alone.json", weight + bias);
  const std::string given = weight + bias + residual + ' ';
  int number = 0;
  for (const Case& c : cases) {
    if (!takes(number++)) continue;
    CAPTURE(c.asked, c.id, c.made);
    const std::map<std::string, json> mutants = mutants_of(files, given + c.asked + " --atol 0");
    REQUIRE(mutants.contains(c.id));
    const json& mutant = mutants.at(c.id);
    CHECK(mutant.at("equivalent") == false);
    CHECK(mutant.at("elements") >= 8 * 512);
    if (c.made.empty()) continue;
    const std::string dtype = c.asked.substr(c.asked.find("--dtype"));
    const std::string made =
        (c.made.starts_with("--given") ? "--quantize static " + c.made : c.made) + ' ' +
        dtype.substr(0, dtype.find(" --"));
    const auto write = [&](const std::string& name, const std::string& options) {
      std::string command = "lnorm x.safetensors -o " + name + ".safetensors";
      if (!contains(options, "static")) command += " --save-scale " + name + ".npy";
      files.shell(command.append(given).append(options));
    };
    write("a", made);
    write("b", c.asked);
    const auto differing = [&](const std::string& pair) {
      return support::parsed_json(files.shell("lnorm compare " + pair + " --json || true").out);
    };
    const int of_scales =
        mutant.at("mismatched").get<int>() -
        differing("a.safetensors b.safetensors --atol 0").at("mismatched").get<int>();
    const json scales =
        contains(made, "static") ? json() : differing("a.npy b.npy").value("mismatched", json());
    if (scales.is_number()) {
      CHECK(scales == of_scales);
    } else {  // the kernel saves as many as were asked for
      CHECK(of_scales >= 0);
      CHECK(of_scales <= mutant.at("elements").get<int>() - 8 * 512);
    }
    CHECK((mutant.at("caught") == true) == (mutant.at("mismatched") != 0));
  }
}

TEST_CASE("scales of bytes in an .npy are what --scale-dtype says") {
  const Workplace files;
  files.write("x.json", "[[1, 2, 4], [2, 2, 5]]");
  const std::string asked = " --quantize row --scale-power-of-two --scale-dtype float8_e8m0";
  files.shell("lnorm x.json --dtype int8 --save-scale s.npy -o q.npy" + asked);
  const Outcome found = files.shell("lnorm check x.json q.npy --actual-scale s.npy" + asked);
  CHECK(found.out ==
        "y: correctly rounded\nscale: correctly rounded\n2 tensors, 2 correctly rounded\n");
}

TEST_CASE("of a quantized kernel's mutants none is caught that writes what is right") {
  const Workplace files;
  const auto caught = [&](const std::string& x, const std::string& options, const std::string& id) {
    files.write("x.json", x);
    files.shell("lnorm convert x.json -o x.safetensors");
    const json mutant = mutants_of(files, options).at(id);
    CAPTURE(x, options, id, mutant.dump());
    CHECK(mutant.at("equivalent") == false);
    CHECK((mutant.at("caught") == true) == (mutant.at("mismatched") != 0));
    return mutant.at("caught") == true;
  };
  const std::string rms = "--rms --eps 0 --dtype int8 --quantize ";
  // Rows of one size, and a row that is not finite.
  const std::string alike = "[[1, -1, 1, 1], [2, 2, -2, 2]]";
  CHECK(!caught(alike, rms + "row", "scale-of-tensor"));
  CHECK(caught("[[1, -1, 1, 1], [2, Infinity, -2, 2], [1, 2, NaN, 3]]", rms + "row", "no-scale"));
  CHECK(caught(alike, rms + "row", "amax-of-x"));
  CHECK(!caught("[[Infinity, 1, 2, NaN]]", rms + "row", "no-scale"));
  CHECK(caught("[[1, -1, 1, 1], [8, 2, -2, 2]]", rms + "row", "scale-of-tensor"));
  // A scale that is a power of two is rounded down to itself.
  CHECK(!caught(alike, rms + "row --scale-power-of-two --qmax 1", "scale-power-of-two-down"));
  CHECK(caught(alike, rms + "row --scale-power-of-two --qmax 3", "scale-power-of-two-down"));
  // Of ties to even nothing is off by one, however y is computed.
  CHECK(!caught("[[0.1, -0.1], [0.3, 0.3]]", rms + "static --given-scale 2", "rounded-y"));
  CHECK(caught("[[1, 2, 1, 1]]", rms + "static --given-scale 0.01", "wraps"));
  CHECK(caught("[[1, 2, 1, 1]]", rms + "row --scale-max 1/100", "wraps"));
  CHECK(caught("[[1, -2, 1, 1]]", rms + "static --given-scale 0.01", "saturates-at-127"));
  CHECK(!caught("[[1, 2, 1, 1]]", rms + "static --given-scale 0.01", "saturates-at-127"));
  const std::string float8 = "--rms --eps 0 --dtype float8_e4m3fn --quantize static --given-scale ";
  CHECK(caught("[[1, 2, 1, 1]]", float8 + "0.003", "not-saturated"));
  CHECK(!caught("[[1, 2, 1, 1]]", float8 + "0.004", "not-saturated"));
  CHECK(caught("[[1, 2, 1, 1]]", float8 + "0.004", "saturates-at-240"));
  // Of a weight that is 0 xhat is known.
  CHECK(caught("[[1, 2, 4, 30]]", rms + "row --weight '[1, 1, 1, 0]'", "amax-of-xhat"));
  // A tolerance of one lets pass what truncates, adds one, or makes 128 of the largest, but for its scale.
  for (const std::string id : {"truncated", "away", "zero-point", "qmax-128", "rounded-y"}) {
    const std::string x = "[[1, 2, 3, 6, 1.3], [-1, 5, 2, -9, 2.4]]";
    CHECK(caught(x, rms + "row --atol 1", id) == (id == "qmax-128"));
    CHECK(caught(x, rms + "row", id) == (id != "rounded-y"));
  }
}

TEST_CASE(
    "the inputs of lnorm inputs let no wrong kernel pass that quantizes, without a tolerance") {
  int number = 0;
  for (const std::string dtype : {"float32", "bfloat16"}) {
    if (number > 0 && kIsSlow) continue;
    const Workplace files;
    files.shell("lnorm inputs --shape 4,1024 --rms -o cases --dtype " + dtype);
    for (const std::string quantize :
         {"row --dtype int8", "tensor --dtype float8_e4m3fn", "row --dtype int8 --round y",
          "row --dtype float8_e4m3fnuz --amax-max 4 --scale-max 1/80",
          "group:128 --dtype float8_e4m3fn --scale-power-of-two --scale-dtype float8_e8m0",
          "static --given-scale 0.02 --dtype int8"}) {
      if (!takes(number++, 2)) continue;
      CAPTURE(dtype, quantize);
      const Outcome found =
          files.shell("lnorm mutants cases --rms --atol 0 --quantize " + quantize);
      CAPTURE(found.out, found.err);
      CHECK(found.status == 0);
    }
  }
}

TEST_CASE("mutants that quantize go with a folder of inputs, and with no gradient") {
  const Workplace files;
  files.shell("lnorm inputs --shape 8,64 --rms -o cases && lnorm cases/ordinary.x.npy -o x.npy");
  const Outcome found =
      files.shell("lnorm mutants cases --rms --quantize group:16 --dtype float8_e4m3fn --json");
  const json report = support::parsed_json(found.out);
  CHECK(report.at("inputs").size() > 3);
  CHECK(report.at("mutants").size() > 15);
  CHECK(report.at("scale_tolerance").at("rtol") == 1.3e-6);
  std::map<std::string, json> by_id;
  for (const json& mutant : report.at("mutants")) by_id[mutant.at("id")] = mutant;
  CHECK(by_id.at("rms").at("equivalent") == true);
  CHECK(by_id.at("layer-norm").at("caught") == true);
  CHECK(by_id.at("drops-nan").at("equivalent") == true);  // all is finite
  for (const std::string id : {"no-mean-terms", "rounded-xhat", "other-dtype"}) {
    CAPTURE(id);
    CHECK(!by_id.contains(id));
  }
  CHECK(files.run("mutants x.npy --quantize row --dtype int8 --dy x.npy"_w).status == 2);
  CHECK(files.run("mutants x.npy --quantize row"_w).status == 2);
  CHECK(files.run("mutants x.npy --dtype int8"_w).status == 2);
  CHECK(files.run("inputs --shape 2,3 --quantize row -o other"_w).status == 2);
}

TEST_CASE("inputs names in its manifest what it lets through that quantizes") {
  const Workplace files;
  const Outcome made = files.run(
      "inputs --shape 4,64 --rms --quantize group:16 --dtype int8 --as bfloat16 -o cases/"_w);
  CHECK(made.status == 0);
  const json manifest = support::parsed_json(files.read("cases/manifest.json"));
  CHECK(manifest.at("options") == "--rms");
  CHECK(manifest.at("alive").empty());
  CHECK(contains(manifest.at("cases").back().dump(), "drops-nan"));
  const json& kills = manifest.at("cases").at(0).at("kills");
  for (const std::string id : {"scale-of-row", "qmax-128", "rounded-y", "layer-norm", "rms"}) {
    const bool is_killed = std::find(kills.begin(), kills.end(), id) != kills.end();
    CAPTURE(id);
    CHECK(is_killed == (id != "rms"));  // which was asked for
  }
  CHECK(files.run("mutants cases/ --rms --quantize group:16 --dtype int8 --atol 0 --quiet"_w)
            .status == 0);
  CHECK(files.output("mutants --list --quantize row --kernels qmax-*,rounded-y"_w) ==
        "id         words                                                     options\n"
        "qmax-N     the largest |y| becomes N                                 --qmax N\n"
        "rounded-y  y is rounded to float16 or bfloat16 before it is divided  --round y\n");
}

// By options that norm the same rows: those of the last axis, of a tensor that is laid out so that a row has all that share a scale.
TEST_CASE("rows share a scale along the axes that are named") {
  const Workplace files;
  files.shell("lnorm inputs --shape 3,5,4,16 -o cases/ && cp cases/different-rows.x.npy x.npy");
  const std::string row = "--quantize row --dtype int8 ";
  const auto applied = [&](const std::string& options) {
    const Outcome done = files.shell("lnorm x.npy " + options + " --save-scale s.npy -o q.npy");
    CAPTURE(options, done.err);
    CHECK(done.status == 0);
    return std::pair(files.read("s.npy"), files.read("q.npy"));
  };
  CHECK(applied(row + "--quantize-axes 3") == applied(row));
  CHECK(applied(row + "--quantize-axes 0,1,2,3").second ==
        applied("--quantize tensor --dtype int8").second);
  for (const std::string axes : {"2,3", "-1,1", "3,0", "0,1,3"}) {
    CAPTURE(axes);
    const std::string quantize = "--quantize row --quantize-axes " + axes + ' ';
    applied(quantize + "--dtype int8");
    // The greatest |y| of each, by another route: stats of the exact result has the greatest of its rows.
    files.shell("lnorm x.npy --dtype float64 -o y.npy");
    const json of_y =
        support::parsed_json(files.shell("lnorm stats y.npy --json --axes " + axes).out);
    const json scales = support::parsed_json(files.shell("lnorm convert s.npy --to json").out);
    const json flat = scales.flatten();
    const json& rows = of_y.at("rows");
    REQUIRE(rows.size() == flat.size());
    auto scale = flat.begin();
    for (const json& one : rows) {
      const double most = std::max(-one.at("input").at("min").get<double>(),
                                   one.at("input").at("max").get<double>());
      CHECK((scale++)->get<double>() == Approx(most / 127).epsilon(1e-6));
    }
    CHECK(of(files, "x.npy q.npy --actual-scale s.npy " + quantize).front() == '0');
    CHECK(of(files, "x.npy q.npy " + quantize).front() == '0');
    CHECK(contains(of(files, "x.npy q.npy --quantize tensor"), "differs"));
    applied("--quantize tensor --dtype int8");
    const std::string said = of(files, "x.npy q.npy " + quantize);
    CAPTURE(said);
    CHECK(contains(said, "scale-of-tensor"));
    applied(quantize + "--dtype int8 --qmax 128");
    CHECK(contains(of(files, "x.npy q.npy " + quantize), "qmax-128"));
    CHECK(contains(of(files, "x.npy q.npy --actual-scale s.npy " + quantize), "qmax-128"));
    applied(row);
    CHECK(contains(of(files, "x.npy q.npy " + quantize), "scale-of-row"));
    CHECK(files
              .shell(
                  "lnorm mutants x.npy --atol 0 --dtype int8 --kernels scale-of-tensor,amax-of-x " +
                  quantize)
              .status == 0);
  }
  CHECK(contains(files.shell("lnorm x.npy --quantize-axes 1 " + row).err, "leave out axis 3"));
  CHECK(contains(files.shell("lnorm x.npy --quantize-axes 2,3 --quantize tensor --dtype int8").err,
                 "--quantize row"));
  CHECK(contains(files.shell("lnorm x.npy --quantize-axes 1,3 --groups 5 " + row).err,
                 "without groups"));
}
