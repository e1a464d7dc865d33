#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/files.hpp"
#include "support/process.hpp"

// Files and folders of several tensors: what a model's dump and its checkpoint are to whoever has them.

namespace {

namespace fs = std::filesystem;
using namespace support;
using Words = std::vector<std::string>;

// A folder with the dump of a small model, data/gpt2, in a shell that finds the program.
class Dump {
 public:
  Dump() { fs::copy(data_file("gpt2"), directory_.path(), fs::copy_options::recursive); }

  Outcome run(const std::string& script) const {
    const std::string program = fs::path(LNORM_BINARY).parent_path().string();
    return support::run({.arguments = {"-c", script},
                         .directory = directory_.path().string(),
                         .environment = {{"PATH", program + ":/usr/bin:/bin"}},
                         .program = "/bin/sh"});
  }

  // What a script prints that must succeed without a word of complaint.
  std::string output(const std::string& script) const {
    const Outcome outcome = run(script);
    INFO(script);
    CHECK(outcome.err == "");
    CHECK(outcome.status == 0);
    return outcome.out;
  }

  std::string read(const std::string& name) const { return read_file(directory_ / name); }
  void write(const std::string& name, const std::string& bytes) const {
    write_file(directory_ / name, bytes);
  }
  bool has(const std::string& name) const { return fs::exists(directory_ / name); }
  // What is in the folder, temporary files as well.
  std::vector<std::string> files() const { return list_directory(directory_.path()); }

 private:
  TempDir directory_;
};

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// The containers that hold the same dump.
const std::vector<std::string> kDumps{"dump.pt", "dump.npz", "dump.safetensors", "dump"};

std::string normalize(const std::string& dump, const std::string& output) {
  return "lnorm '" + dump + ":h.*.in' --weight '" + dump + ":h.{1}.ln_1.weight' --bias '" + dump +
         ":h.{1}.ln_1.bias' -o " + output;
}

}  // namespace

TEST_CASE("every layer of a dump agrees with PyTorch, from any container into any", "[sets]") {
  const Dump dump;
  for (const std::string& from : kDumps) {
    for (const std::string to : {"y.safetensors", "y.npz", "y.json", "y/"}) {
      CAPTURE(from, to);
      CHECK(dump.output(normalize(from, to)) == "");
      const std::string out = dump.output("lnorm compare " + to + " '" + from +
                                          ":h.*.out' --rename 'h.*.out=h.{1}.in'");
      CHECK(contains(out, "h.11.in"));
      CHECK(contains(out, "12 tensors: 12 agree"));
    }
  }
  // The same numbers, whatever they came from.
  CHECK(dump.output(normalize("dump.pt", "a.safetensors") + "; " +
                    normalize("dump.safetensors", "b.safetensors") +
                    "; lnorm compare a.safetensors b.safetensors --max-ulp 0 -q && echo same") ==
        "same\n");
}

TEST_CASE("the first layer that differs is named", "[sets]") {
  const Dump dump;
  dump.output(normalize("dump.npz", "mine/"));
  dump.output(
      "lnorm dump.npz:h.7.in --eps 1e-2 -o mine/h.7.in.npy; "
      "lnorm dump.npz:h.9.in --eps 1e-4 -o mine/h.9.in.npy");
  for (const std::string& from : kDumps) {
    const Outcome outcome =
        dump.run("lnorm compare mine/ '" + from + ":h.*.out' --rename 'h.*.out=h.{1}.in'");
    CAPTURE(from, outcome.out);
    CHECK(outcome.status == 1);
    CHECK(contains(outcome.out, "12 tensors: 10 agree, 2 differ; first: h.7.in"));
  }
}

TEST_CASE(
    "weights come from the shards of a checkpoint, and results barrier their reference by name",
    "[sets]") {
  const Dump dump;
  CHECK(dump.output(
            "lnorm 'acts.npz:h.*.in' --weight 'model.safetensors.index.json:"
            "model.layers.{1}.input_layernorm.weight' --rms --eps 1e-6 -o out.safetensors") == "");
  const std::string out = dump.output(
      "lnorm compare out.safetensors ref.pt --rename 'model.*={1}' "
      "--tolerance 'h.1*=1e-2,1e-3'");
  CHECK(contains(out, "12 tensors: 12 agree"));
  // Without the new names nothing has a partner.
  CHECK(dump.run("lnorm compare out.safetensors ref.pt").status == 1);
}

TEST_CASE("a shard is opened when a tensor of it is asked for", "[sets]") {
  const Dump dump;
  const std::string index = "model.safetensors.index.json";
  CHECK(contains(dump.output("lnorm show " + index), "12 tensors"));
  fs::remove(fs::path(dump.output("pwd | tr -d '\\n'")) / "model-00002-of-00002.safetensors");
  CHECK(dump.output("lnorm " + index + ":model.layers.0.input_layernorm.weight") != "");
  const Outcome missing = dump.run("lnorm " + index + ":model.layers.11.input_layernorm.weight");
  CHECK(refusal_fault(missing, {"model.safetensors.index.json", "model.layers.11",
                                "model-00002-of-00002.safetensors", "No such file"}) == "");
  const auto refuse = [&](const std::string& json, const Words& words) {
    dump.write("x.index.json", json);
    CHECK(refusal_fault(dump.run("lnorm show x.index.json:a"), words) == "");
  };
  refuse(R"({"weight_map": {"a": "../model.safetensors"}})", {"no file beside the index"});
  refuse(R"({"weight_map": {"a": "/etc/passwd"}})", {"no file beside the index"});
  refuse(R"({"weight_map": {"a": ".."}})", {"no file beside the index"});
  refuse(R"({"weight_map": {"a": 1}})", {"'a' is no name of a file"});
  refuse(R"({"weight_map": {"a": "x", "a": "y"}})", {"'a' is there twice"});
  refuse(R"({"weight_map": [)", {"not valid JSON"});
  refuse(R"({"weights": {}})", {"no object \"weight_map\""});
  refuse(R"({"weight_map": {"a": "model-00001-of-00002.safetensors"}})",
         {"'a' is not in its shard model-00001-of-00002.safetensors"});
}

TEST_CASE("one bad tensor among many keeps the output away, or is left out", "[sets]") {
  const Dump dump;
  dump.write("w.json", R"({"h.0.w": [1, 2], "h.1.w": [1], "h.2.w": [3, 4], "h.3.w": [1, 1]})");
  dump.write("x.json", R"({"h.0": [1, 2], "h.1": [3, 5], "h.2": [5, 6], "h.4": [7, 8]})");
  const std::vector<std::string> before = dump.files();
  const std::string command = "lnorm 'x.json:h.*' --eps 0 --weight 'w.json:h.{1}.w' ";
  for (const std::string to : {"-o y.safetensors", "-o y.npz", "-o y.json", "-o y/", ""}) {
    const Outcome outcome = dump.run(command + to);
    CAPTURE(to);
    CHECK(refusal_fault(outcome, {"x.json:h.1: --weight w.json:h.1.w has shape (1)", "(2)"}) == "");
    CHECK(dump.files() == before);
  }
  for (const std::string to : {"y.safetensors", "y.npz", "y.json", "y/"}) {
    const Outcome outcome = dump.run(command + "--keep-going -o " + to);
    CAPTURE(to);
    CHECK(outcome.status == 2);
    CHECK(std::count(outcome.err.begin(), outcome.err.end(), '\n') == 2);
    CHECK(contains(outcome.err, "x.json:h.1: --weight w.json:h.1.w"));
    CHECK(contains(outcome.err, "x.json:h.4: --weight w.json: there is no tensor 'h.4.w'"));
    CHECK(contains(dump.output("lnorm show " + to), "2 tensors, 32 B"));
    CHECK(contains(dump.output("lnorm show " + to + ":h.2"), "tensor([-3.,  4.]"));
  }
}

TEST_CASE("damage that is found late leaves the others whole", "[sets]") {
  const Dump dump;
  // The sum of one member is wrong, which its end tells.
  std::string bytes = dump.read("acts.npz");
  const std::size_t at = bytes.find("h.3.in.npy");
  REQUIRE(at != std::string::npos);
  bytes[at + 300] = static_cast<char>(bytes[at + 300] ^ 1);
  dump.write("bad.npz", bytes);
  const std::vector<std::string> before = dump.files();
  for (const std::string to : {"y.safetensors", "y.npz", "y.json", "y/"}) {
    CAPTURE(to);
    CHECK(refusal_fault(dump.run("lnorm 'bad.npz:*' -o " + to), {"bad.npz:h.3.in", "damaged"}) ==
          "");
    CHECK(dump.files() == before);
  }
  dump.output("lnorm 'acts.npz:*' -o whole.safetensors");
  for (const std::string to : {"y.safetensors", "y.npz", "y.json", "y/"}) {
    CAPTURE(to);
    const Outcome outcome = dump.run("lnorm 'bad.npz:*' --keep-going -o " + to);
    CHECK(outcome.status == 2);
    CHECK(contains(outcome.err, "bad.npz:h.3.in: is damaged"));
    CHECK(contains(dump.output("lnorm compare " + to + " whole.safetensors --common --max-ulp 0"),
                   "11 tensors: 11 agree"));
    CHECK(!contains(dump.output("lnorm show " + to), "h.3.in"));
  }
}

TEST_CASE("a pipe of .safetensors is a set of tensors", "[sets]") {
  const Dump dump;
  dump.output("lnorm 'dump.safetensors:h.*.in' -o y.safetensors");
  CHECK(contains(dump.output("cat dump.safetensors | lnorm '-:h.*.in' | lnorm compare - "
                             "y.safetensors --max-ulp 0"),
                 "12 tensors: 12 agree"));
  CHECK(dump.output("cat dump.safetensors | lnorm stats -") ==
        dump.output("lnorm stats dump.safetensors"));
  CHECK(dump.output("cat dump.safetensors | lnorm show") ==
        dump.output("lnorm show dump.safetensors"));
  CHECK(dump.output("cat dump.safetensors | lnorm -:h.5.in --to json") ==
        dump.output("lnorm dump.safetensors:h.5.in --to json"));
  // What is cut off is not taken for whole.
  const Outcome cut = dump.run("head -c 9000 dump.safetensors | lnorm '-:h.0.*' -o z.safetensors");
  CHECK(refusal_fault(cut, {"standard input", "cut off"}) == "");
  CHECK(!dump.has("z.safetensors"));
}

TEST_CASE("several inputs, and a folder", "[sets]") {
  const Dump dump;
  CHECK(dump.output("lnorm dump/h.0.in.npy dump.npz:h.1.in 'dump.pt:h.2.*' -o y.json; "
                    "lnorm show y.json | cut -d' ' -f1 | head -n -1") ==
        "h.0.in\nh.1.in\nh.2.in\nh.2.ln_1.weight\nh.2.ln_1.bias\nh.2.out\n");
  CHECK(contains(dump.output("lnorm show dump.npz dump.pt | tail -n 1"), "96 tensors"));
  const Outcome twice = dump.run("lnorm dump.npz:h.0.in dump.pt:h.0.in -o y.safetensors");
  CHECK(refusal_fault(twice, {"-o y.safetensors", "'h.0.in'", "there twice"}) == "");
  CHECK(contains(dump.output("lnorm compare dump dump.pt | tail -n 1"), "48 tensors: 48 agree"));
  // Names in a folder are paths without extensions, in natural order.
  dump.output(
      "mkdir -p run/deep; cp dump/h.10.in.npy dump/h.2.in.npy run; "
      "cp dump/h.0.in.npy run/deep; echo x > run/notes.txt; cp dump/h.0.in.npy run/.h.npy");
  CHECK(dump.output("lnorm show run | cut -d' ' -f1 | head -n -1") ==
        "deep/h.0.in\nh.2.in\nh.10.in\n");
  CHECK(dump.output(
            "lnorm 'run:*' -o copy/; lnorm compare copy run --rtol 1e9 -q; ls copy copy/deep") ==
        "copy:\ndeep\nh.10.in.npy\nh.2.in.npy\n\ncopy/deep:\nh.0.in.npy\n");
  dump.output("cp dump.pt run/h.2.in.pt");
  CHECK(refusal_fault(dump.run("lnorm show run"), {"run: two files give the name 'h.2.in'"}) == "");
}

TEST_CASE("an output that holds one tensor is refused several", "[sets]") {
  const Dump dump;
  const std::vector<std::string> before = dump.files();
  for (const std::string to : {"y.npy", "y.jsonl"}) {
    CHECK(refusal_fault(dump.run("lnorm 'acts.npz:*' -o " + to),
                        {to, "holds one tensor, found 12", "hint: "}) == "");
  }
  CHECK(refusal_fault(dump.run("lnorm 'acts.npz:*' --save-mean m.npy -o y.npz"),
                      {"--save-mean m.npy", "holds one tensor"}) == "");
  CHECK(refusal_fault(dump.run("lnorm 'acts.npz:*' --name x -o y.npz"), {"--name"}) == "");
  CHECK(refusal_fault(dump.run("lnorm 'acts.npz:nothing*' -o y.npz"),
                      {"acts.npz: there is no tensor that matches 'nothing*', only h.0.in"}) == "");
  CHECK(dump.files() == before);
  CHECK(contains(dump.output("lnorm 'acts.npz:h.[01].in' --to text"),
                 "h.0.in: float32, shape (2, 4, 16)\ntensor([[["));
  dump.output("lnorm 'acts.npz:h.[01].in' --save-mean m.json -o y.npz");
  CHECK(contains(dump.output("lnorm show m.json"), "h.1.in  float64  (2, 4, 1)  64 B"));
}

TEST_CASE("a literal name beats a pattern, and a file beats a member", "[sets]") {
  const Dump dump;
  dump.write("x.json", R"({"a*": [1, 2], "ab": [3, 5], "b": [1, 1]})");
  CHECK(dump.output("lnorm show 'x.json:a*'") == "tensor([1., 2.], dtype=torch.float64)\n");
  CHECK(contains(dump.output("lnorm show 'x.json:[a]*'"), "2 tensors"));
  dump.write("x.json:b", "[7, 8]");
  CHECK(dump.output("lnorm show x.json:b") == "tensor([7., 8.], dtype=torch.float64)\n");
}

TEST_CASE("a member of every line is normalized, and the others are passed on", "[sets]") {
  const Dump dump;
  dump.write("rows.jsonl",
             "{\"id\": 7,  \"x\": [1, 3], \"y\": {\"x\": [0]}}\n\n{\"x\":[[2,2],[1,5]]}\n");
  CHECK(dump.output("lnorm -:x --from jsonl --eps 0 --axes -1 < rows.jsonl; "
                    "lnorm rows.jsonl:x | head -n 1") ==
        "{\"id\": 7,  \"x\": [-1.0,1.0], \"y\": {\"x\": [0]}}\n"
        "{\"x\":[[NaN,NaN],[-1.0,1.0]]}\n"
        "{\"id\": 7,  \"x\": [-0.9999950000374996,0.9999950000374996], \"y\": {\"x\": [0]}}\n");
  dump.write("rows.jsonl", "{\"x\": [1, 3]}\n{\"z\": [1]}\n");
  const Outcome outcome = dump.run("lnorm rows.jsonl:x");
  CHECK(outcome.status == 2);
  CHECK(contains(outcome.err, "rows.jsonl:2:1: there is no member 'x', only z"));
}

TEST_CASE("a line of statistics for every tensor", "[sets]") {
  const Dump dump;
  const std::string csv = dump.output("lnorm stats acts.npz --csv");
  CHECK(std::count(csv.begin(), csv.end(), '\n') == 13);
  CHECK(csv.starts_with("name,"));
  // The table of one tensor has the same rows.
  const std::string all = dump.output("lnorm stats acts.npz --all");
  CHECK(contains(all, dump.output("lnorm stats acts.npz:h.5.in --all")));
  CHECK(refusal_fault(dump.run("lnorm stats acts.npz --softmax"), {"--softmax", "--all"}) == "");
  dump.write("empty.safetensors", safetensors("{}", ""));
  CHECK(dump.output("lnorm show empty.safetensors") == "no tensors\n");
  CHECK(contains(dump.output("lnorm show empty.safetensors --json"), "\"tensors\":[]"));
  dump.write("empty.json", "{}");
  CHECK(dump.output("lnorm show empty.json") == "no tensors\n");
}

TEST_CASE("a folder is written whole or not at all", "[sets]") {
  const Dump dump;
  dump.output("mkdir there; echo kept > there/h.0.in.npy; echo mine > there/notes");
  CHECK(dump.run("lnorm 'acts.npz:*' --weight '[1, 2]' -o there/").status == 2);
  CHECK(dump.read("there/h.0.in.npy") == "kept\n");
  CHECK(dump.output("ls -A there") == "h.0.in.npy\nnotes\n");
  dump.output("lnorm 'acts.npz:*' -o there");
  CHECK(contains(dump.output("lnorm show there"), "12 tensors"));
  CHECK(dump.read("there/notes") == "mine\n");
  CHECK(refusal_fault(dump.run("lnorm 'acts.npz:*' -o no/such/"),
                      {"-o no/such: No such file", "hint: mkdir -p no/such"}) == "");
  dump.write("up.json", R"({"../up": [1, 2], "b": [1, 2]})");
  CHECK(refusal_fault(dump.run("lnorm 'up.json:*' -o out/"), {"../up"}) == "");
  CHECK(!dump.has("out"));
  CHECK(!dump.has("up.npy"));
}

TEST_CASE("what a placeholder stands for is a name, and no pattern", "[sets]") {
  const Dump dump;
  dump.write("x.json", R"({"x[0]": [1, 3], "h.*": [1, 3]})");
  dump.write("w.json", R"({"x0": [2, 2], "h.1": [3, 3]})");
  CHECK(refusal_fault(dump.run("lnorm 'x.json:x*' --weight 'w.json:{}'"),
                      {"x.json:x[0]: --weight w.json: there is no tensor 'x[0]', only x0, h.1"}) ==
        "");
  CHECK(refusal_fault(dump.run("lnorm 'x.json:h.[*]' --weight 'w.json:{}'"), {"'h.*'"}) == "");
}

TEST_CASE("with --keep-going all that can be done is done", "[sets]") {
  const Dump dump;
  dump.output(
      "mkdir run; cp dump/h.0.in.npy run; ln -s nowhere run/gone.npy; mkfifo run/pipe.npy; "
      "echo junk > run/junk.npy");
  const Outcome listed = dump.run("lnorm show run");
  CHECK(listed.status == 0);
  CHECK(contains(listed.out, "gone    (run/gone.npy: No such file or directory)"));
  CHECK(!contains(listed.out, "pipe"));
  const Outcome outcome = dump.run("lnorm 'run:*' --keep-going -o y/");
  CHECK(outcome.status == 2);
  CHECK(std::count(outcome.err.begin(), outcome.err.end(), '\n') == 2);
  CHECK(dump.output("ls y") == "h.0.in.npy\n");
  dump.write("rows.jsonl", "{\"x\": [1, 3]}\n{\"z\": [1]}\n{\"x\": [2, 2\n{\"x\": [5, 7]}\n");
  const Outcome lines = dump.run("lnorm rows.jsonl:x --eps 0 --keep-going");
  CHECK(lines.status == 2);
  CHECK(lines.out == "{\"x\": [-1.0,1.0]}\n{\"x\": [-1.0,1.0]}\n");
  CHECK(contains(lines.err, "rows.jsonl:2:1: ") == true);
  CHECK(contains(lines.err, "rows.jsonl:3:") == true);
}

TEST_CASE("the other members of a line are JSON, or the line is refused", "[sets]") {
  const Dump dump;
  for (const std::string bad :
       {R"({"x": [1, 3], "id": nope})", R"({"id": 01, "x": [1, 3]})",
        R"({"id": {"a" 1}, "x": [1, 3]})", R"({"x": [1, 3], "id": "\x"})"}) {
    CAPTURE(bad);
    dump.write("rows.jsonl", bad + "\n");
    CHECK(refusal_fault(dump.run("lnorm rows.jsonl:x"), {"rows.jsonl:1:"}) == "");
  }
  dump.write("rows.jsonl", R"({"x": [1, 3], "id": [NaN], "o": {"a": [{}]}})");
  CHECK(dump.output("lnorm rows.jsonl:x --eps 0") ==
        "{\"x\": [-1.0,1.0], \"id\": [NaN], \"o\": {\"a\": [{}]}}\n");
}

TEST_CASE("a tensor cannot be left out of a header that a pipe has taken", "[sets]") {
  const Dump dump;
  std::string bytes = dump.read("acts.npz");
  const std::size_t at = bytes.find("h.3.in.npy");
  bytes[at + 300] = static_cast<char>(bytes[at + 300] ^ 1);
  dump.write("bad.npz", bytes);
  const Outcome outcome = dump.run("lnorm 'bad.npz:*' --keep-going | cat > y");
  CHECK(contains(outcome.err, "bad.npz:h.3.in: is damaged"));
  CHECK(contains(outcome.err, "standard output: tensor 'h.3.in' cannot be left out"));
  CHECK(contains(outcome.err, "hint: -o FILE has the others"));
}

TEST_CASE("an archive of nothing has no tensors", "[sets]") {
  const Dump dump;
  dump.write("nothing.npz", std::string("PK\5\6", 4) + std::string(18, '\0'));
  CHECK(dump.output("lnorm show nothing.npz") == "no tensors\n");
  CHECK(refusal_fault(dump.run("lnorm nothing.npz"), {"nothing.npz: found 0 tensors"}) == "");
  for (const std::string option : {"--rms", "--eps 1", "--eps-on std"}) {
    CHECK(refusal_fault(dump.run("lnorm stats acts.npz " + option), {"no effect", "--all"}) == "");
  }
}

TEST_CASE("a folder has one file for a name", "[sets]") {
  const Dump dump;
  dump.output("lnorm 'acts.npz:h.[01].in' -o y/");
  const Outcome outcome = dump.run("lnorm 'acts.npz:h.[01].in' --dtype bfloat16 -o y/");
  CHECK(refusal_fault(outcome, {"y/h.0.in.npy", "y/h.0.in.safetensors", "hint: rm y/h.0.in.npy"}) ==
        "");
  dump.write("dot.json", R"({".dot": [1, 2], "b": [1, 2]})");
  CHECK(refusal_fault(dump.run("lnorm 'dot.json:*' -o z/"), {"'.dot'", "begins with a dot"}) == "");
}
