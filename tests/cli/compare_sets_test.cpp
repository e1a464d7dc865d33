#include <nlohmann/json.hpp>

#include "support/commands.hpp"
#include "support/json.hpp"
#include "support/zip.hpp"

// Files and folders of several tensors held against each other, as users do it.

namespace {

using namespace support;
using nlohmann::json;

const std::string kActual =
    R"({"h.0": [[1, 2], [3, 4]], "h.7": [1, 2.5], "h.10": [5.5, 8], "shape": [1, 2]})";
const std::string kExpected =
    R"({"h.0": [[1, 2], [3, 4]], "h.7": [1, 2], "h.10": [5, 12], "shape": [[1, 2]], "new": 3})";

struct ComparedSets : Workplace {
  ComparedSets() {
    write("a.json", kActual);
    write("b.json", kExpected);
    write("same.json", R"({"h.10": [5.5, 8], "h.7": [1, 2.5], "h.0": [[1, 2], [3, 4]]})");
    write("renamed.json", R"({"m.h.0.w": [[1, 2], [3, 4]], "m.h.7.w": [1, 2.5], "x": 1})");
    write("one.json", "[1, 2]");
    write("empty.json", "{}");
  }
  Outcome compare(const Words& words, const Stream& in = {}) const {
    return run(Words{"compare"} + words, in);
  }
};

std::string last_line(const std::string& text) {
  const std::size_t at = text.rfind('\n', text.size() - 2);
  return text.substr(at + 1, text.size() - at - 2);
}

// Two tensors, "b" of two floats and "a" of one.
const std::string kSafetensors = safetensors(
    R"({"b":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"a":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}})",
    bytes_of<float>({1, 2, 3}));

}  // namespace

TEST_CASE("tensors of two files have a line each, and the first and the worst are named") {
  const ComparedSets at;
  const Outcome said = at.compare({"a.json", "b.json"});
  CHECK(said.status == 1);
  CHECK(said.err == "");
  CHECK(said.out ==
        "a.json and b.json differ (float64), tolerance rtol 1e-07 + atol 1e-07\n"
        "name   shape   mismatched  abs   rel      ulp  sqnr\n"
        "h.0    (2, 2)           0    0     0        0   inf\n"
        "h.7    (2)              1  0.5  0.25  1.1e+15    13  first\n"
        "h.10   (2)              2    4  0.33  2.3e+15  10.2  worst\n"
        "shape  (2)     expected (1, 2)\n"
        "only in b.json: new\n"
        "4 tensors: 1 agrees, 3 differ; 1 only in b.json; first: h.7; worst: h.10 "
        "(2.3e+15 row-ulp)\n"
        "details: lnorm compare a.json:h.7 b.json:h.7\n");

  const Outcome by_abs = at.compare("same.json b.json --by abs --skip h.10"_w);
  CHECK(contains(by_abs.out, "0.25  1.1e+15    13  first, worst\n"));
  CHECK(contains(by_abs.out, "first: h.7; worst: h.7 (0.5 abs)\n"));

  // In the order of the expected file.
  const Outcome same = at.compare("a.json same.json --common --max-ulp 0"_w);
  CHECK(same.status == 0);
  CHECK(same.out ==
        "a.json and same.json agree (float64), tolerance 0 ulp\n"
        "name  shape   mismatched  abs  rel  ulp  sqnr\n"
        "h.10  (2)              0    0    0    0   inf\n"
        "h.7   (2)              0    0    0    0   inf\n"
        "h.0   (2, 2)           0    0    0    0   inf\n"
        "3 tensors: 3 agree; 1 only in a.json\n");
  CHECK(at.compare({"a.json", "same.json"}).status == 1);
  CHECK(at.compare({"empty.json", "a.json"}).status == 1);
}

TEST_CASE("the last line of a report leads to the tensor that differs first") {
  const ComparedSets at;
  at.write("odd ones.json", R"({"it's [a]": [1, 2], "b": 1})");
  at.write("odder.json", R"({"it's [a]": [1, 3], "b": 1})");
  const std::vector<Words> cases{{"a.json", "b.json"},
                                 {"odd ones.json", "odder.json"},
                                 "a.json b.json --max-ulp 3 --no-equal-nan"_w,
                                 "a.json b.json --tolerance h.7=1e-3,0.1"_w};
  for (const Words& words : cases) {
    const std::string line = last_line(at.compare(words).out);
    CAPTURE(line);
    REQUIRE(line.starts_with("details: lnorm compare "));
    const Outcome details = at.shell(line.substr(line.find("lnorm")));
    CHECK(details.status == 1);
    CHECK(contains(details.out, "greatest absolute difference: "));
    if (words.size() > 3) {
      const std::string tolerance = words[2] == "--tolerance" ? "rtol 0.001 + atol 0.1" : "3 ulp";
      CHECK(contains(details.out, "tolerance " + tolerance));
    }
  }
}

TEST_CASE("the last line of a report has the masks of tensors that were renamed") {
  const Workplace at;
  at.write("a.json", R"({"n.h": [1, 2], "n.k": [1]})");
  at.write("b.json", R"({"m.h": [1, 3], "m.k": [1]})");
  at.write("mask.json", R"({"h": [0, 1], "k": [1]})");
  const std::string line =
      last_line(at.shell("lnorm compare a.json b.json --rename 'n.*={1}' --rename 'm.*={1}' --mask "
                         "mask.json:{}")
                    .out);
  CHECK(line == "details: lnorm compare a.json:n.h b.json:m.h --mask mask.json:h");
  CHECK(at.shell(line.substr(line.find("lnorm"))).status == 1);
  const Outcome of_one = at.run("compare a.json a.json --mask mask.json"_w);
  CHECK(contains(of_one.err, "hint: one for each: 'mask.json:{}'"));
}

TEST_CASE("tensors are compared whatever formats they are in") {
  const ComparedSets at;
  at.write("x.safetensors", kSafetensors);
  at.write("x.npz", zip({{"a.npy", npy_of_floats({3}), true}, {"b.npy", npy_of_floats({1, 2})}}));
  at.write("x.json", R"({"a": {"shape": [1], "data": [3], "dtype": "float32"}, "b": [1, 2]})");
  at.write("folder/a.npy", npy_of_floats({3}));
  at.write("folder/b.npy", npy_of_floats({1, 2}));
  for (const std::string actual : {"x.safetensors", "x.npz", "x.json", "folder", "x.npz:*"}) {
    for (const std::string expected : {"x.safetensors", "x.npz", "x.json", "folder/"}) {
      CAPTURE(actual, expected);
      const Outcome said = at.compare({actual, expected});
      CHECK(said.err == "");
      CHECK(said.status == 0);
      CHECK(contains(said.out, "2 tensors: 2 agree\n"));
    }
    // From a pipe they are read in its order.
    const Outcome said = at.compare({actual, "-"}, pipe_of(kSafetensors));
    CHECK(said.err == "");
    CHECK(said.status == 0);
    CHECK(at.compare({"-", actual}, pipe_of(kSafetensors)).status == 0);
  }
  // What is of several dtypes has a column for them.
  const Outcome mixed = at.compare({"x.json", "x.npz"});
  CHECK(contains(mixed.out, "\nname  dtype            shape"));
  CHECK(contains(mixed.out, "\nb     float64/float32  (2)"));
}

TEST_CASE("names say what is compared, and how closely") {
  const ComparedSets at;
  struct Case {
    Words words;
    int status;
    std::string summary;
  };
  const std::vector<Case> cases{
      {"a.json b.json --only h.0"_w, 0, "1 tensor: 1 agrees"},
      {"a.json b.json --only h.?"_w, 1, "2 tensors: 1 agrees, 1 differs; first: h.7"},
      {"a.json b.json --only new"_w, 1, "no name in common; 1 only in b.json"},
      {"a.json b.json --skip h.?* --skip new --only *"_w, 1,
       "1 tensor: 0 agree, 1 differs; first: shape"},
      {"a.json b.json --common --skip shape --tolerance h.7=0,0.5 --tolerance h.*=1,0"_w, 0,
       "3 tensors: 3 agree; 1 only in b.json"},
      {"a.json renamed.json --rename m.*.w={1} --common"_w, 0,
       "2 tensors: 2 agree; 2 only in a.json; 1 only in renamed.json"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.words);
    const Outcome said = at.compare(c.words);
    CHECK(said.err == "");
    CHECK(said.status == c.status);
    CHECK(contains(said.out, "\n" + c.summary));
    Words quiet = c.words;
    quiet.push_back("-q");
    const Outcome silent = at.compare(quiet);
    CHECK(silent.status == c.status);
    CHECK(silent.out == "");
    CHECK(silent.err == "");
  }
}

TEST_CASE("what cannot be meant is refused before anything is compared") {
  const ComparedSets at;
  for (const std::string name : {"a", "b"}) {
    at.output({"convert", name + ".json", "-o", name + ".npz"});
  }
  const std::vector<std::pair<Words, Words>> cases{
      {"a.json b.json --only x*"_w, {"--only: 'x*' matches no tensor", "h.0, h.7"}},
      {"a.json b.json --rename h.*"_w, {"--rename: 'h.*' is not PATTERN=NEW", "hint"}},
      {"a.json b.json --rename h.*=x"_w, {"ACTUAL a.json: both 'h.0' and 'h.7' get the name 'x'"}},
      {"same.json b.json --rename new=h.0"_w,
       {"EXPECTED b.json: both 'h.0' and 'new' get the name 'h.0'"}},
      {"a.json b.json --tolerance 1e-3"_w,
       {"--tolerance: '1e-3' is not PATTERN=RTOL,ATOL", "hint: for all tensors"}},
      {"a.json b.json --tolerance h.*=1,x"_w, {"--tolerance: 'x' is not a finite number"}},
      {"a.json b.json --tolerance h.*=1,-1"_w, {"--tolerance: -1 is negative"}},
      {"a.json b.json --worst 3"_w, {"--worst has no effect", "hint: --json"}},
      {"a.json b.json --max-diffs 3"_w, {"--max-diffs has no effect", "hint: --json"}},
      {"a.json b.json --axes 0"_w, {"axes has no effect", "hint: --json"}},
      {"a.json b.json --csv --worst 1"_w, {"--worst has no effect beside --csv"}},
      {"a.json b.json --csv --json"_w, {"found both --json and --csv"}},
      {"a.json b.json --csv -q"_w, {"--csv has no effect beside --quiet"}},
      {{"a.json", "one.json"}, {"a.json: found 4 tensors", "hint: name one: a.json:h.0"}},
      {{"one.json", "a.json"}, {"a.json: found 4 tensors", "hint: name one: a.json:h.0"}},
      {{"a.json:h.7", "b.json"}, {"b.json: found 5 tensors", "hint: name one: b.json:h.0"}},
      {{"empty.json", "empty.json"}, {"empty.json and empty.json have no tensors"}},
      {"renamed.json b.json --common"_w, {"have no name in common", "hint: --rename"}},
      {"a.json b.json --skip *"_w, {"--skip leaves no tensor"}},
      {"a.npz b.npz --as bfloat16"_w, {"--as bfloat16 has no effect on a.npz and b.npz"}},
      {"one.json one.json --common"_w, {"--common has no effect", "one tensor on each side"}},
      {"a.json:h.7 b.json:h.7 --only h*"_w, {"--only has no effect"}},
      {"one.json one.json --skip h*"_w, {"--skip has no effect"}},
      {"one.json one.json --rename h*=x"_w, {"--rename has no effect"}},
      {"one.json one.json --tolerance h*=1,1"_w, {"--tolerance has no effect", "--rtol"}},
  };
  for (const auto& [words, said] : cases) {
    CAPTURE(words);
    CHECK(refusal_fault(at.compare(words), said) == "");
  }
}

TEST_CASE("a report of several tensors as JSON has that of each of them") {
  const ComparedSets at;
  const Outcome said = at.compare("a.json b.json --json --axes=-1 --worst 2"_w);
  CHECK(said.status == 1);
  const json report = support::parsed_json(said.out);
  CHECK(report.at("schema") == 1);
  CHECK(report.at("command") == "compare");
  CHECK(report.at("actual").at("name") == "a.json");
  CHECK(report.at("equal") == false);
  CHECK(report.at("actual_only").empty());
  CHECK(report.at("expected_only") == json{"new"});
  CHECK(report.at("summary") == json{{"tensors", 4},
                                     {"agree", 1},
                                     {"differ", 3},
                                     {"errors", 0},
                                     {"first", "h.7"},
                                     {"worst", "h.10"},
                                     {"by", "row-ulp"}});
  for (json tensor : report.at("tensors")) {
    const std::string name = tensor.at("name");
    CAPTURE(name);
    const Outcome single =
        at.compare({"a.json:" + name, "b.json:" + name, "--json", "--axes=-1", "--worst", "2"});
    json expected = support::parsed_json(single.out);
    expected.erase("schema");
    expected.erase("command");
    tensor.erase("name");
    CHECK(tensor == expected);
  }
}

TEST_CASE("a report as CSV has a line a tensor") {
  const ComparedSets at;
  const std::string head =
      "name,result,actual_dtype,expected_dtype,actual_shape,expected_shape,elements,mismatched,"
      "greatest_absolute_difference,greatest_relative_difference,greatest_ulp_distance,"
      "non_finite_one_side,non_finite_differing,failed,pairs,equal_numbers,mean_error,"
      "mean_absolute_error,root_mean_square_error,cosine,sqnr_db,"
      "correctly_rounded,mean_error_toward_zero,mean_error_away_from_zero,"
      "greatest_row_ulp_distance,left_out,rounded_to_infinity,equal_bits,ulp_dtype,where,"
      "affected_rows,affected_columns,fit_scale,fit_offset,rows,rows_mismatched\n";
  at.write("c.json", R"({"h.7": [1, 2], "say \"a\", b": 1, "gone": 1, "shape": [[1, 2]]})");
  at.write("d.json", R"({"h.7": [1, NaN], "say \"a\", b": 1, "new": 3, "shape": [1, 2]})");
  const Outcome said = at.compare("c.json d.json --csv"_w);
  CHECK(said.status == 1);
  CHECK(
      said.out ==
      head +
          "h.7,differ,float64,float64,(2),(2),2,1,0,0,0,1,0,finite,1,1,0,0,0,1,inf,,0,0,0,0,0,1,"
          "float64,"
          "column 1 in all rows,1,1,,,,\n"
          "\"say \"\"a\"\", b\",agree,float64,float64,(),(),1,0,0,0,0,0,0,,1,1,0,0,0,1,inf,,0,0,0,"
          "0,0,1,float64,,0,0,,,,\n"
          "shape,differ,float64,float64,\"(1, 2)\",(2)" +
          std::string(30, ',') + "\ngone,actual_only" + std::string(34, ',') +
          "\nnew,expected_only" + std::string(34, ',') + "\n");
  CHECK(at.compare("one.json one.json --csv"_w).out ==
        head +
            "one.json,agree,float64,float64,(2),(2),2,0,0,0,0,0,0,,2,2,0,0,0,1,inf,,0,0,0,"
            "0,0,2,float64,,0,0,,,,\n");
}

TEST_CASE("NaN and infinity on one side are the worst") {
  const ComparedSets at;
  at.write("n.json", R"({"h.0": [[1, 2], [3, NaN]], "h.7": [1e300, 2.5], "h.10": [5.5, 8]})");
  const Outcome said = at.compare({"n.json", "same.json"});
  CHECK(said.status == 1);
  CHECK(contains(said.out, "first: h.7; worst: h.0 (NaN or infinity)\n"));
}

TEST_CASE("a tensor that cannot be read is named, and --keep-going compares the others") {
  const ComparedSets at;
  at.write("bad.npz", zip({{"a.npy", npy_of_floats({3})},
                           {"b.npy", npy_of_floats({1, 2}).substr(0, 130)},
                           {"c.npy", npy("<c8", {1}, std::string(8, '\0'))},
                           {"d.npy", npy_of_floats({5})}}));
  at.write("good.npz", zip({{"a.npy", npy_of_floats({3})},
                            {"b.npy", npy_of_floats({1, 2})},
                            {"c.npy", npy_of_floats({1})},
                            {"d.npy", npy_of_floats({5})}}));
  CHECK(refusal_fault(at.compare({"bad.npz", "good.npz"}), {"bad.npz:b"}) == "");
  for (const Words& files : {Words{"bad.npz", "good.npz"}, Words{"good.npz", "bad.npz"}}) {
    const Outcome said = at.compare({files[0], files[1], "--keep-going"});
    CHECK(said.status == 2);
    CHECK(contains(said.err, "lnorm: bad.npz:b"));
    CHECK(contains(said.err, "\nlnorm: bad.npz:c"));
    CHECK(contains(said.out, "\nb            error\n"));
    CHECK(contains(said.out, "\nd     (1)             0"));
    CHECK(last_line(said.out) == "4 tensors: 2 agree, 2 errors");
    CHECK(contains(said.out, " agree as far as they can be read (float32)"));
    const json report =
        support::parsed_json(at.compare({files[0], files[1], "--keep-going", "--json"}).out);
    CHECK(report.at("equal") == false);
    CHECK(report.at("summary").at("errors") == 2);
    const std::string error = report.at("tensors").at(1).at("error");
    CHECK(contains(said.err, "lnorm: " + error + "\n"));
    const Outcome csv = at.compare({files[0], files[1], "--keep-going", "--csv"});
    CHECK(contains(csv.out, "\nc,error" + std::string(34, ',') + "\n"));
  }
}

TEST_CASE("long names are shortened where lines have a width, and lines fit where they can") {
  const ComparedSets at;
  const std::string name = "transformer.encoder.layers.11.attention.self.output.LayerNorm.weight";
  at.write("long.json", "{\"" + name + "\": [[1, 2, 3]], \"\u00e4\u00f6\u00fc\": 1}");
  CHECK(contains(at.compare({"long.json", "long.json"}).out, "\n" + name + "  (1, 3)"));
  const Outcome said = at.compare("long.json long.json --linewidth 80"_w);
  CHECK(contains(said.out, "\ntransformer.encode...t.LayerNorm.weight  (1, 3)"));
  std::size_t start = 0;
  for (std::size_t end = 0; (end = said.out.find('\n', start)) != std::string::npos;
       start = end + 1) {
    CHECK(end - start <= 80 + 3);  // three of its letters take two bytes
  }
  CHECK(contains(at.compare("long.json long.json --csv"_w).out, "\n" + name + ",agree"));
  // Color, if it is asked for: the verdict, and lines that differ.
  const Outcome color = at.compare("a.json b.json --color always"_w);
  CHECK(contains(color.out, "\x1b[31m differ\x1b[0m"));
  CHECK(contains(color.out, "\x1b[31mh.7 "));
  CHECK(contains(color.out, "\nh.0 "));
}

TEST_CASE("ten thousand tensors are compared in no time") {
  const ComparedSets at;
  std::string header = "{";
  for (int i = 0; i < 10'000; ++i) {
    header += (i == 0 ? "\"h." : ",\"h.") + std::to_string(i) +
              R"(":{"dtype":"F32","shape":[16],"data_offsets":[)" + std::to_string(64 * i) + "," +
              std::to_string(64 * i + 64) + "]}";
  }
  const std::string bytes = safetensors(header + "}", std::string(640'000, '\1'));
  at.write("many.safetensors", bytes);
  const Outcome said = at.compare({"many.safetensors", "many.safetensors"});
  CHECK(said.status == 0);
  CHECK(last_line(said.out) == "10000 tensors: 10000 agree");
#ifndef LNORM_SLOW
  CHECK(said.cpu_seconds < 2);
#endif
}
