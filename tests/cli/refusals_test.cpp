#include "support/commands.hpp"

// Every wrong use: exit status 2, nothing on standard output, one line that says who, where, what
// was found and what was expected, and perhaps a hint.

namespace {

using namespace support;

struct Refusal {
  Words arguments;
  Words expected;
  std::string in = {};
};

struct RefusalFolder : Workplace {
  RefusalFolder() {
    write("x.npy", npy("<f4", {2, 3, 4}, std::string(96, '\0')));
    write("w3.npy", npy("<f4", {3}, std::string(12, '\0')));
    write("short.npy", npy("<f4", {2, 3}, std::string(20, '\0')));
    write("long.npy", npy("<f4", {2, 3}, std::string(25, '\0')));
    write("v2.npy", npy("<V2", {2, 3}, std::string(12, '\0')));
    write("object.npy", npy("|O", {2, 3}, std::string(48, '\0')));
    write("empty.npy", "");
    write("blank.json", " \n");
    write("magic.npy", "\x89PNG\r\n\x1a\n\0\0\0\rIHDR");
    write("pickle.pkl", "\x80\x04\x95\x0b");
    write("x.json", "[[1, 2, 3], [4, 5, 6]]");
    write("ragged.json", "[[1,2,3],\n [4,5,6],\n [7,8,9,10]]");
    write("deep.json", "[[[1,2],[3,4]],[[5,6],\n[7]]]");
    write("kind.json", "[[1,2],\n [3,\xc3\xa9]]");
    write("string.json", "[[1,2],[3,\"4\"]]");
    write("boolean.json", "[[1,true]]");
    write("object.json", "[[1,{\"a\":1}]]");
    write("after.json", "[1,2]\n[3,4]");
    write("huge.json", "[1, 1e400]");
    write("members.json", "{\"w\": [1, 2, 3], \"b\": [1, 2], \"s\": \"no\"}");
    write("many.json", "{\"shape\": [2, 3], \"data\": [1, 2, 3, 4, 5]}");
    write("int8.json", "{\"shape\": [2], \"data\": [1, 300], \"dtype\": \"int8\"}");
    write("a\nb.npy", "");
    std::filesystem::create_directory(*this / "folder");
  }
  void check(const std::vector<Refusal>& refusals) const {
    const Words before = files();
    for (const Refusal& refusal : refusals) {
      CAPTURE(refusal.arguments);
      CHECK(fault(refusal.arguments, refusal.expected, pipe_of(refusal.in)) == "");
      CHECK(files() == before);
    }
  }
};

}  // namespace

TEST_CASE("an input that cannot be read is named with the reason") {
  RefusalFolder().check({
      {{"no.npy"}, {"no.npy: No such file"}},
      {{"no.json:w"}, {"no.json:w: No such file"}},
      {{""}, {"''"}},
      {{"folder"}, {"folder: found 0 tensors, nothing, expected one"}},
      {"folder --from npy"_w, {"folder: is a directory"}},
      {{"empty.npy"}, {"empty.npy: is empty"}},
      {{"a\nb.npy"}, {"a\\nb.npy: is empty"}},
      {"blank.json --from json"_w, {"blank.json:2:1: "}},
      {{}, {"standard input: is empty"}},
      {{"-"}, {"standard input: is empty"}},
      {{"magic.npy"}, {"magic.npy", "not an .npy file"}},
      {{"pickle.pkl"}, {"pickle.pkl", "pickle", "never executed"}},
      {{"short.npy"}, {"short.npy", "(2, 3)", "float32", "24 bytes", "found 20"}},
      {{"long.npy"}, {"long.npy", "(2, 3)", "float32", "24 bytes", "found 25 (a transfer"}},
      {{}, {"standard input", "24 bytes", "found 3"}, npy("<f4", {2, 3}, "abc")},
      {{"v2.npy"}, {"v2.npy", "'<V2'", "bfloat16", "hint: --as bfloat16"}},
      {"x.npy --as bfloat16"_w, {"x.npy", "float32", "--as bfloat16"}},
      {"x.npy --as float16"_w, {"--as float16", "without --from raw", "bfloat16"}},
      {"stats x.json --as bfloat16"_w, {"x.json", "float64", "--as bfloat16"}},
      {"softmax x.npy --as bfloat16"_w, {"x.npy", "float32", "--as bfloat16"}},
      {"x.npy --axis 0 --weight v2.npy"_w, {"v2.npy", "hint: --as bfloat16"}},
      {"compare v2.npy x.json"_w, {"v2.npy", "hint: --as bfloat16"}},
      {{"object.npy"}, {"object.npy", "object", "pickle"}},
      {{"x.npy:w"}, {"x.npy", "one tensor", "w"}},
      {"x.json --from npy"_w, {"x.json", "not an .npy file"}},
      {"x.npy --from json"_w, {"x.npy:1:"}},
  });
}

TEST_CASE("an error in JSON has line, column and index path") {
  RefusalFolder().check({
      {{"ragged.json"}, {"ragged.json:3:2: row 2 has 4 elements, expected 3"}},
      {{"deep.json"}, {"deep.json:2:1: row [1][1] has 1 element, expected 2"}},
      {{"kind.json"}, {"kind.json:2:5: [1][1] is '\xc3\xa9', expected a number"}},
      {{"string.json"}, {"string.json:1:11: [1][1] is a string, expected a number"}},
      {{"boolean.json"}, {"boolean.json:1:5: [0][1] is a boolean, expected a number"}},
      {{"object.json"}, {"object.json:1:5: [0][1] is an object, expected a number"}},
      {{"after.json"}, {"after.json:2:1: ", "after the value"}},
      {{"huge.json"}, {"huge.json:1:5: [1] is '1e400'", "float64"}},
      {{"int8.json"}, {"int8.json:1:28: [1] is '300'", "int8"}},
      {{"many.json"}, {"many.json:1:27: ", "(5)", "6 elements", "(2, 3)"}},
      {{"members.json"}, {"members.json", "w, b, s", "hint: name one: members.json:w"}},
      {{"members.json:v"}, {"members.json", "'v'", "w, b, s"}},
      {{"members.json:s"}, {"members.json:1:36: ", "is a string, expected a number"}},
      {{"x.json:w"}, {"x.json: holds one tensor without a name, found ':w'"}},
      {{}, {"standard input:2:2: ", "'x'"}, "[1,\n x]"},
  });
}

TEST_CASE("a weight or bias that does not fit is named with both shapes") {
  RefusalFolder().check({
      {"x.npy --weight w3.npy"_w, {"w3.npy", "weight", "(3)", "(4)"}},
      {"x.npy --bias w3.npy"_w, {"w3.npy", "bias", "(3)", "(4)"}},
      {"x.npy --gamma members.json:b"_w, {"members.json:b", "weight", "(2)", "(4)"}},
      {"x.npy --axis 1 --weight [1,2,3,4]"_w, {"--weight", "(4)", "(3, 4)"}},
      {"x.npy --axis 1 --shift [[1],[2],[3]]"_w, {"--bias", "(3, 1)", "(3, 4)"}},
      {"x.npy --weight no.npy"_w, {"no.npy: No such file"}},
      {{"x.npy", "--weight", ""}, {"''"}},
      {"x.npy --weight [1,2"_w, {"--weight:1:"}},
      {"x.npy --weight [1,2,3,x]"_w, {"--weight:1:8: [3] is 'x'"}},
      {"x.npy --bias 1e400"_w, "--bias 1e400"_w},
      {"x.npy --weight short.npy"_w, {"short.npy"}},
  });
}

TEST_CASE("axes that do not fit the tensor are named with its shape") {
  RefusalFolder().check({
      {"x.npy --axis 3"_w, {"x.npy: (2, 3, 4)", "axis 3", "-3 to 2"}},
      {"x.npy --axis -4"_w, {"x.npy: (2, 3, 4)", "axis -4", "-3 to 2"}},
      {"x.npy --axes 2,3"_w, {"x.npy: (2, 3, 4)", "axis 3", "-3 to 2"}},
      {"x.npy --axes -1,2"_w, {"x.npy: (2, 3, 4)", "axis 2 twice"}},
      {{"x.npy", "--axes", ""}, "--axes ''"_w},
      {"x.npy --axes 1,"_w, "--axes ''"_w},
      {"x.npy --normalized-shape 5"_w, {"x.npy", "(5)", "(2, 3, 4)"}},
      {"x.npy --normalized-shape 3"_w, {"(3)", "(2, 3, 4)", "hint: (3) is axis 1", "--axes 1?"}},
      {"x.npy --normalized-shape 2,3"_w,
       {"(2, 3)", "(2, 3, 4)", "hint: (2, 3) are axes 0,1", "--axes 0,1?"}},
      {"x.npy --normalized-shape 1,2,3,4"_w, {"(1, 2, 3, 4)", "(2, 3, 4)"}},
      {"x.npy --axis 0 --axes 0,1,2"_w, {"--axis", "--axes", "one of"}},
      {"x.npy --axis -1 --normalized-shape 4"_w, "--axis --normalized-shape"_w},
      {"x.npy --axes -1 --normalized-shape 4"_w, "--axes --normalized-shape"_w},
  });
}

TEST_CASE("a number out of range is named with its range") {
  RefusalFolder().check({
      {"x.npy --eps=-1e-300"_w, {"--eps: -1e-300", "0 or more"}},
      {"x.npy --eps nan"_w, {"--eps", "'nan' is not a finite number", "finite"}},
      {"x.npy --eps inf"_w, {"--eps", "'inf' is not a finite number", "finite"}},
      {"x.npy --eps 1e999"_w, {"eps", "1e999"}},
      {"x.npy --eps 1e-5x"_w, "--eps '1e-5x' number"_w},
      {"x.npy --ddof 4"_w, {"x.npy", "ddof is 4", "4 elements"}},
      {"x.npy --ddof 0.5"_w, "--ddof '0.5' integer"_w},
      {{"--unbiased"}, {"standard input", "ddof is 1", "1 element"}, "[[1],[2]]"},
      {"x.npy --axis 9223372036854775808"_w, "--axis 9223372036854775808"_w},
      {"x.npy --precision -1"_w, "--precision -1"_w},
  });
}

TEST_CASE("a wrong word on the command line is named with the right ones") {
  RefusalFolder().check({
      {"x.npy --to pt"_w, "--to 'pt' npy npz json text"_w},
      {"x.npy --from csv"_w, "--from 'csv' npy json"_w},
      {"x.npy --dtype int8"_w, "--dtype 'int8' float16 float32 float64"_w},
      {"x.npy --kernel fast"_w, {"'fast'", "reference"}},
      {"x.npy --nan none"_w, "--nan 'none' null"_w},
      {"x.npy --esp 1"_w, {"--esp", "hint: did you mean --eps?"}},
      {"x.npy --blue 1"_w, {"--blue", "hint: lnorm apply --help"}},
      {"x.npy --unbiased --ddof 0"_w, "--unbiased --ddof"_w},
  });
}

TEST_CASE("one stream cannot serve twice") {
  RefusalFolder().check({
      {"- --weight -"_w, {"standard input", "two"}, "[1]"},
      {"--bias -"_w, {"standard input", "two"}, "[1]"},
      {"x.npy --weight - --bias -"_w, {"standard input", "two"}, "[1]"},
      {"x.npy --weight=-:w --bias=-:b"_w, {"standard input", "two"}, "{\"w\": 1, \"b\": 1}"},
      {"x.npy --save-mean -"_w, {"standard output", "two"}},
      {"x.npy -o y.npy --save-mean y.npy"_w, {"y.npy", "two"}},
      {"x.npy --save-mean m.npy --save-rstd m.npy"_w, {"m.npy", "two"}},
      {"x.npy -o y.npy --save-mean ./y.npy"_w, {"y.npy", "two"}},
      {"x.npy --save-mean /dev/stdout"_w, {"/dev/stdout", "two"}},
      {"x.npy --save-rstd /dev/fd/1"_w, {"/dev/fd/1", "two"}},
      {"--rms x.npy --save-mean m.npy"_w, "--rms --save-mean"_w},
  });
}

TEST_CASE("an output that cannot be written is named with the reason") {
  RefusalFolder().check({
      {"x.npy -o folder"_w, {"folder: is a directory"}},
      {"x.npy -o no/y.npy"_w, {"no/y.npy: No such file"}},
      {{"x.npy", "-o", ""}, {"''"}},
      {{"x.npy", "-o", std::string(300, 'y')}, {"File name too long"}},
      {"x.npy -o y.pt"_w,
       {"y.pt", "is not written",
        ".npy, .npz, .safetensors, .json, .jsonl, .ndjson, .bin, .raw or .txt"}},
      {"x.npy -o y.safetensors --name __metadata__"_w,
       {"y.safetensors", "'__metadata__'", "hint: --name"}},
      {{"x.npy", "--to", "safetensors", "--name", "\xff"}, {"'\\xff'", "UTF-8"}},
      {"x.npy --save-mean m.pt"_w, {"m.pt", "is not written"}},
      {"x.npy -o x.npy/y.npy"_w, {"x.npy/y.npy: Not a directory"}},
      {"x.npy -o y.npy --save-rstd no/r.npy"_w, {"no/r.npy: No such file"}},
  });
}

TEST_CASE("reports that exclude each other are named") {
  RefusalFolder().check({
      {"stats x.npy --json --csv"_w, {"both --json and --csv", "expected one"}},
      {"stats x.npy --csv --json"_w, {"both --json and --csv", "expected one"}},
      {"stats x.npy --histogram --json"_w, {"--histogram has no effect beside --json"}},
      {"stats x.npy --csv --histogram"_w, "--histogram --csv"_w},
      {"stats x.npy --digits 5 --json"_w, "--digits --json"_w},
      {"stats x.npy --digits 0"_w, {"--digits: '0' is not an integer from 1 to 17"}},
      {"stats x.npy --digits 18"_w, {"--digits: '18' is not an integer from 1 to 17"}},
  });
}

TEST_CASE("stats refuses what apply refuses") {
  RefusalFolder().check({
      {"stats no.npy"_w, {"no.npy: No such file"}},
      {"stats short.npy"_w, {"short.npy", "24 bytes", "found 20"}},
      {{"stats"}, {"standard input: is empty"}},
      {"stats x.npy --ddof 4"_w, {"x.npy", "ddof is 4", "4 elements"}},
      {"stats --unbiased"_w, {"standard input", "ddof is 1", "1 element"}, "5"},
      {"stats x.npy --axis 3"_w, {"x.npy: (2, 3, 4)", "axis 3", "-3 to 2"}},
      {"stats x.npy --axis 0 --axes 0"_w, {"--axis", "--axes", "one of"}},
      {"stats x.npy --eps -1"_w, {"--eps: -1", "0 or more"}},
      {"stats x.npy --weight w3.npy"_w, {"w3.npy", "weight", "(3)", "(4)"}},
      {"stats --bias -"_w, {"standard input", "two"}, "[1]"},
  });
}

TEST_CASE("compare takes two tensors that can be read") {
  const Words two{"two tensors", "ACTUAL and EXPECTED", "hint: lnorm compare --help"};
  const auto found = [&](const std::string& count) {
    Words words = two;
    words.push_back("found " + count);
    return words;
  };
  RefusalFolder().check({
      {{"compare"}, found("0")},
      {"compare x.npy"_w, found("1")},
      {"compare -"_w, found("1"), "[1]"},
      {"compare x.npy x.npy w3.npy"_w, found("3")},
      {"compare x.npy -:w x.npy"_w, found("3")},
      {"compare - -"_w, {"standard input", "two inputs"}, "[1]"},
      {"compare -:a -:b"_w, {"standard input", "two inputs"}, R"({"a": 1, "b": 1})"},
      {"compare - -:b"_w, {"standard input", "two inputs"}, R"({"a": 1, "b": 1})"},
      {"compare x.npy no.npy"_w, {"no.npy: No such file"}},
      {"compare no.npy x.npy"_w, {"no.npy: No such file"}},
      {"compare x.json short.npy"_w, {"short.npy", "24 bytes", "found 20"}},
      {"compare long.npy x.json"_w, {"long.npy", "24 bytes", "found 25"}},
      {"compare x.npy x.npy --worst 0 --by abs"_w, {"--by", "--worst 0"}},
      {"compare x.npy x.npy --worst 1001"_w, {"--worst: '1001'", "0 to 1000"}},
      {"compare x.npy x.npy --by ulps"_w, "--by 'ulps' ulp|abs|rel"_w},
      {"compare x.npy folder"_w, {"folder: found 0 tensors"}},
      {"compare x.npy -"_w, {"standard input: is empty"}},
      {"compare x.json -"_w, {"standard input", "cut off"}, npy("<f4", {2, 3}, "abcd")},
      {"compare - x.json"_w, {"standard input:1:"}, "[[1,2,3],[4,5,6]"},
      {"compare x.npy members.json:v"_w, {"members.json", "'v'", "w, b, s"}},
      {"compare -q x.npy no.npy"_w, {"no.npy: No such file"}},
      {"compare --json x.npy no.npy"_w, {"no.npy: No such file"}},
  });
}

TEST_CASE("a tolerance out of range is named with its range") {
  const auto of = [](const Words& options) { return "compare x.npy x.npy"_w + options; };
  RefusalFolder().check({
      {of("--rtol -1"_w), {"--rtol", "-1", "negative", "0 or more"}},
      {of({"--rtol=-1e-300"}), {"--rtol", "-1e-300", "0 or more"}},
      {of("--rtol nan"_w), {"--rtol", "'nan' is not a finite number"}},
      {of("--rtol 1e999"_w), "--rtol '1e999' float64"_w},
      {of("--atol -0.5"_w), {"--atol", "-0.5", "0 or more"}},
      {of("--atol inf"_w), {"--atol", "'inf' is not a finite number"}},
      {of("--atol 1e-5x"_w), "--atol '1e-5x' number"_w},
      {of("--max-ulp -1"_w), {"--max-ulp", "-1", "negative", "0 or more"}},
      {of("--max-ulp half"_w), {"--max-ulp", "'half'", "finite number"}},
      {of("--max-abs -1"_w), {"--max-abs", "-1", "0 or more"}},
      {of("--max-mean-abs inf"_w), {"--max-mean-abs", "'inf'", "finite number"}},
      {of("--max-rmse -1e-9"_w), {"--max-rmse", "-1e-9", "0 or more"}},
      {of("--min-cosine 1.01"_w), {"--min-cosine", "1.01", "-1 to 1"}},
      {of("--min-sqnr 40dB"_w), {"--min-sqnr", "'40dB'", "finite number"}},
      {of("--max-mismatched 1.5"_w), {"--max-mismatched", "'1.5'", "integer from 0"}},
      {of("--max-mismatched -1"_w), {"--max-mismatched", "'-1'", "integer from 0"}},
      {of("--max-mismatched -1%"_w), {"--max-mismatched", "-1", "0 or more"}},
      {of("--max-mismatched 101%"_w), {"--max-mismatched", "101%", "0% to 100%"}},
      {of("--max-mismatched %"_w), {"--max-mismatched", "''", "finite number"}},
      {of("--histogram --quiet"_w), {"--histogram has no effect beside --quiet"}},
      {of("--histogram --json"_w), {"--histogram has no effect beside --json"}},
      {of("--histogram --csv"_w), {"--histogram has no effect beside --csv"}},
      {of("--max-diffs x"_w), {"--max-diffs", "'x'", "integer from 0"}},
      {of("--max-diffs 1000001"_w), {"--max-diffs", "1000001", "0 to 1000000"}},
      {of({"--json=false"}), {"--json takes no value", "hint: lnorm compare --help"}},
      {{"stat", "x.npy"}, {"a command nor a file 'stat'", "hint: did you mean lnorm stats?"}},
      {"stats x.npy --unbiased=2"_w, {"--unbiased takes no value", "hint: lnorm stats"}},
      {of({"--rtol"}), {"--rtol", "one value", "hint: lnorm compare --help"}},
      {of("--rtol 1 --rtol 2"_w), {"--rtol is given twice"}},
  });
}

TEST_CASE("an option of another command is none, and the commands that have it are named") {
  const auto refusal = [](const Words& arguments, const std::string& option,
                          const std::string& hint) {
    return Refusal{arguments, {"there is no option " + option, "hint: " + hint}};
  };
  RefusalFolder().check({
      refusal("apply x.npy --softmax"_w, "--softmax", "--softmax is an option of lnorm stats"),
      refusal("apply x.npy --color never"_w, "--color",
              "--color is an option of lnorm stats, compare, check, mutants, explain and show"),
      refusal("stats x.npy --to json"_w, "--to", "here it is --json, or --csv"),
      refusal("stats -o y.npy x.npy"_w, "-o", "the result goes to standard output: > FILE"),
      refusal("stats x.npy --precision 3"_w, "--precision", "here it is --digits"),
      refusal("compare x.npy --eps x.npy"_w, "--eps",
              "--eps is an option of lnorm apply, stats, check, mutants, inputs, grad, explain and "
              "report"),
      refusal("compare --tol x.npy x.npy"_w, "--tol", "here they are --rtol and --atol"),
      refusal("softmax x.npy --unbiased"_w, "--unbiased",
              "--unbiased is an option of lnorm apply, stats, check, mutants, inputs, grad, "
              "explain and report"),
      refusal(
          "softmax --weight=1 x.npy"_w, "--weight=1",
          "--weight is an option of lnorm apply, stats, check, mutants, grad, explain and report"),
      refusal("softmax x.npy --save-mean m.npy"_w, "--save-mean",
              "--save-mean is an option of lnorm apply"),
      refusal("show x.npy --axis 0"_w, "--axis",
              "--axis is an option of lnorm apply, stats, compare, check, mutants, inputs, "
              "softmax, grad, explain "
              "and report"),
      refusal("show -y x.npy"_w, "-y", "lnorm show --help lists the options"),
  });
}

TEST_CASE("a wrong word for one of the other commands is named with the right ones") {
  RefusalFolder().check({
      {"stats x.npy --color yes"_w, "--color 'yes' auto|always|never"_w},
      {{"show", "x.npy", "--color", ""}, "--color '' auto|always|never"_w},
      {"softmax x.npy --progress on"_w, "--progress 'on' auto|always|never"_w},
      {"compare x.npy x.npy --progress 1"_w, "--progress '1' auto"_w},
      {"stats x.npy --from csv"_w, "--from 'csv' npy json"_w},
      {"show x.json --from npy"_w, {"x.json", "not an .npy file"}},
      {"stats x.npy y.npy"_w, {"no file 'y.npy', the 2nd INPUT"}},
      {"softmax x.npy y.npy"_w, {"no file 'y.npy'", "hint: -o y.npy writes there"}},
      {"x.npy - x.npy -"_w, {"standard input is named for two inputs"}},
  });
}

TEST_CASE("show refuses what holds no tensor") {
  RefusalFolder().check({
      {"show no.npy"_w, {"no.npy: No such file"}},
      {{"show", ""}, {"''"}},
      {{"show"}, {"standard input: is empty"}},
      {"show -"_w, {"standard input: is empty"}},
      {"show empty.npy"_w, {"empty.npy: is empty"}},
      {"show object.npy --header"_w, {"object.npy", "pickle"}},
      {"show ragged.json --header"_w, {"ragged.json:3:2: row 2 has 4 elements, expected 3"}},
      {"show x.npy --precision -1"_w, {"--precision", "-1", "0 to 100"}},
      {"show x.npy --precision 101"_w, {"--precision", "101", "0 to 100"}},
      {"show x.npy --edgeitems x"_w, "--edgeitems 'x' integer"_w},
  });
}

TEST_CASE("softmax refuses axes and outputs that apply refuses") {
  RefusalFolder().check({
      {"softmax x.npy --axis 3"_w, {"x.npy: (2, 3, 4)", "axis 3", "-3 to 2"}},
      {"softmax x.npy --normalized-shape 5"_w, {"x.npy", "(5)", "(2, 3, 4)"}},
      {"softmax x.npy --axis 0 --axes 0"_w, {"--axis", "--axes", "one of"}},
      {"softmax x.npy --dtype int8"_w, "--dtype 'int8' float32"_w},
      {"softmax short.npy -o y.npy"_w, {"short.npy", "24 bytes", "found 20"}},
      {"softmax x.npy -o folder"_w, {"folder: is a directory"}},
      {"softmax x.npy -o y.pb"_w, {"y.pb", "is not written"}},
  });
}
