#include <algorithm>

#include "support/commands.hpp"

// Files and folders of several tensors: what a model's dump and its checkpoint are to whoever has them.

namespace {

namespace fs = std::filesystem;
using namespace support;

// A folder with the dump of a small model, data/gpt2, in a shell that finds the program.
struct Dump : Workplace {
  Dump() { fs::copy(data_file("gpt2"), path(), fs::copy_options::recursive); }
};

// In bad.npz the sum of one member is wrong, which shows at its end.
void damage_a_member(const Dump& dump) {
  std::string bytes = dump.read("acts.npz");
  const std::size_t at = bytes.find("h.3.in.npy");
  REQUIRE(at != std::string::npos);
  bytes[at + 300] = static_cast<char>(bytes[at + 300] ^ 1);
  dump.write("bad.npz", bytes);
}

// The containers that hold the same dump.
const Words kDumps{"dump.pt", "dump.npz", "dump.safetensors", "dump"};
const Words kOutputs{"y.safetensors", "y.npz", "y.json", "y/"};

std::string normalize(const std::string& dump, const std::string& output) {
  return "lnorm '" + dump + ":h.*.in' --weight '" + dump + ":h.{1}.ln_1.weight' --bias '" + dump +
         ":h.{1}.ln_1.bias' -o " + output;
}

}  // namespace

TEST_CASE("every layer of a dump agrees with PyTorch, from any container into any", "[sets]") {
  const Dump dump;
  for (const std::string& from : kDumps) {
    for (const std::string& to : kOutputs) {
      CAPTURE(from, to);
      CHECK(dump.shell_output(normalize(from, to)) == "");
      const std::string out = dump.shell_output("lnorm compare " + to + " '" + from +
                                                ":h.*.out' --rename 'h.*.out=h.{1}.in'");
      CHECK(contains(out, "h.11.in"));
      CHECK(contains(out, "12 tensors: 12 agree"));
    }
  }
  // The same numbers, whatever they came from.
  CHECK(dump.shell_output(
            normalize("dump.pt", "a.safetensors") + "; " +
            normalize("dump.safetensors", "b.safetensors") +
            "; lnorm compare a.safetensors b.safetensors --max-ulp 0 -q && echo same") == "same\n");
}

TEST_CASE("the first layer that differs is named", "[sets]") {
  const Dump dump;
  dump.shell_output(normalize("dump.npz", "mine/"));
  dump.shell_output(
      "lnorm dump.npz:h.7.in --eps 1e-2 -o mine/h.7.in.npy; "
      "lnorm dump.npz:h.9.in --eps 1e-4 -o mine/h.9.in.npy");
  for (const std::string& from : kDumps) {
    const Outcome outcome =
        dump.shell("lnorm compare mine/ '" + from + ":h.*.out' --rename 'h.*.out=h.{1}.in'");
    CAPTURE(from, outcome.out);
    CHECK(outcome.status == 1);
    CHECK(contains(outcome.out, "12 tensors: 10 agree, 2 differ; first: h.7.in"));
  }
}

TEST_CASE("weights come from the shards of a checkpoint, and results meet their reference by name",
          "[sets]") {
  const Dump dump;
  CHECK(dump.shell_output(
            "lnorm 'acts.npz:h.*.in' --weight 'model.safetensors.index.json:"
            "model.layers.{1}.input_layernorm.weight' --rms --eps 1e-6 -o out.safetensors") == "");
  const std::string out = dump.shell_output(
      "lnorm compare out.safetensors ref.pt --rename 'model.*={1}' "
      "--tolerance 'h.1*=1e-2,1e-3'");
  CHECK(contains(out, "12 tensors: 12 agree"));
  // Without the new names nothing has a partner.
  CHECK(dump.shell("lnorm compare out.safetensors ref.pt").status == 1);
}

TEST_CASE("a shard is opened when a tensor of it is asked for", "[sets]") {
  const Dump dump;
  const std::string index = "model.safetensors.index.json";
  CHECK(contains(dump.shell_output("lnorm show " + index), "12 tensors"));
  fs::remove(dump / "model-00002-of-00002.safetensors");
  CHECK(dump.shell_output("lnorm " + index + ":model.layers.0.input_layernorm.weight") != "");
  CHECK(dump.fault({index + ":model.layers.11.input_layernorm.weight"},
                   {"model.safetensors.index.json", "model.layers.11",
                    "model-00002-of-00002.safetensors", "No such file"}) == "");
  const auto refuse = [&](const std::string& json, const Words& words) {
    dump.write("x.index.json", json);
    CHECK(dump.shell_fault("lnorm show x.index.json:a", words) == "");
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
  const Words before = dump.files();
  const std::string command = "lnorm 'x.json:h.*' --eps 0 --weight 'w.json:h.{1}.w' ";
  for (const std::string to : {"-o y.safetensors", "-o y.npz", "-o y.json", "-o y/", ""}) {
    CAPTURE(to);
    CHECK(dump.shell_fault(command + to,
                           {"x.json:h.1: --weight w.json:h.1.w has shape (1)", "(2)"}) == "");
    CHECK(dump.files() == before);
  }
  for (const std::string& to : kOutputs) {
    const Outcome outcome = dump.shell(command + "--keep-going -o " + to);
    CAPTURE(to);
    CHECK(outcome.status == 2);
    CHECK(std::count(outcome.err.begin(), outcome.err.end(), '\n') == 2);
    CHECK(contains(outcome.err, "x.json:h.1: --weight w.json:h.1.w"));
    CHECK(contains(outcome.err, "x.json:h.4: --weight w.json: there is no tensor 'h.4.w'"));
    CHECK(contains(dump.shell_output("lnorm show " + to), "2 tensors, 32 B"));
    CHECK(contains(dump.shell_output("lnorm show " + to + ":h.2"), "tensor([-3.,  4.]"));
  }
}

TEST_CASE("damage that is found late leaves the others whole", "[sets]") {
  const Dump dump;
  damage_a_member(dump);
  const Words before = dump.files();
  for (const std::string& to : kOutputs) {
    CAPTURE(to);
    CHECK(dump.shell_fault("lnorm 'bad.npz:*' -o " + to, {"bad.npz:h.3.in", "damaged"}) == "");
    CHECK(dump.files() == before);
  }
  dump.shell_output("lnorm 'acts.npz:*' -o whole.safetensors");
  for (const std::string& to : kOutputs) {
    CAPTURE(to);
    const Outcome outcome = dump.shell("lnorm 'bad.npz:*' --keep-going -o " + to);
    CHECK(outcome.status == 2);
    CHECK(contains(outcome.err, "bad.npz:h.3.in: is damaged"));
    CHECK(contains(
        dump.shell_output("lnorm compare " + to + " whole.safetensors --common --max-ulp 0"),
        "11 tensors: 11 agree"));
    CHECK(!contains(dump.shell_output("lnorm show " + to), "h.3.in"));
  }
}

TEST_CASE("a pipe of .safetensors is a set of tensors", "[sets]") {
  const Dump dump;
  dump.shell_output("lnorm 'dump.safetensors:h.*.in' -o y.safetensors");
  CHECK(contains(dump.shell_output("cat dump.safetensors | lnorm '-:h.*.in' | lnorm compare - "
                                   "y.safetensors --max-ulp 0"),
                 "12 tensors: 12 agree"));
  CHECK(dump.shell_output("cat dump.safetensors | lnorm stats -") ==
        dump.shell_output("lnorm stats dump.safetensors"));
  CHECK(dump.shell_output("cat dump.safetensors | lnorm show") ==
        dump.shell_output("lnorm show dump.safetensors"));
  CHECK(dump.shell_output("cat dump.safetensors | lnorm -:h.5.in --to json") ==
        dump.shell_output("lnorm dump.safetensors:h.5.in --to json"));
  // What is cut off is not taken for whole.
  CHECK(dump.fault("-:h.0.* -o z.safetensors"_w, {"standard input", "cut off"},
                   pipe_of(dump.read("dump.safetensors").substr(0, 9000))) == "");
  CHECK(!dump.has("z.safetensors"));
}

TEST_CASE("several inputs, and a folder", "[sets]") {
  const Dump dump;
  CHECK(dump.shell_output("lnorm dump/h.0.in.npy dump.npz:h.1.in 'dump.pt:h.2.*' -o y.json; "
                          "lnorm show y.json | cut -d' ' -f1 | head -n -1") ==
        "h.0.in\nh.1.in\nh.2.in\nh.2.ln_1.weight\nh.2.ln_1.bias\nh.2.out\n");
  CHECK(contains(dump.shell_output("lnorm show dump.npz dump.pt | tail -n 1"), "96 tensors"));
  CHECK(dump.fault("dump.npz:h.0.in dump.pt:h.0.in -o y.safetensors"_w,
                   {"-o y.safetensors", "'h.0.in'", "there twice"}) == "");
  CHECK(contains(dump.shell_output("lnorm compare dump dump.pt | tail -n 1"),
                 "48 tensors: 48 agree"));
  // Names in a folder are paths without extensions, in natural order.
  dump.shell_output(
      "mkdir -p run/deep; cp dump/h.10.in.npy dump/h.2.in.npy run; "
      "cp dump/h.0.in.npy run/deep; echo x > run/notes.txt; cp dump/h.0.in.npy run/.h.npy");
  CHECK(dump.shell_output("lnorm show run | cut -d' ' -f1 | head -n -1") ==
        "deep/h.0.in\nh.2.in\nh.10.in\n");
  CHECK(dump.shell_output(
            "lnorm 'run:*' -o copy/; lnorm compare copy run --rtol 1e9 -q; ls copy copy/deep") ==
        "copy:\ndeep\nh.10.in.npy\nh.2.in.npy\n\ncopy/deep:\nh.0.in.npy\n");
  dump.shell_output("cp dump.pt run/h.2.in.pt");
  CHECK(dump.shell_fault("lnorm show run", {"run: two files give the name 'h.2.in'"}) == "");
}

TEST_CASE("an output that holds one tensor is refused several", "[sets]") {
  const Dump dump;
  const Words before = dump.files();
  for (const std::string to : {"y.npy", "y.jsonl"}) {
    CHECK(dump.shell_fault("lnorm 'acts.npz:*' -o " + to,
                           {to, "holds one tensor, found 12", "hint: "}) == "");
  }
  CHECK(dump.shell_fault("lnorm 'acts.npz:*' --save-mean m.npy -o y.npz",
                         {"--save-mean m.npy", "holds one tensor"}) == "");
  CHECK(dump.shell_fault("lnorm 'acts.npz:*' --name x -o y.npz", {"--name"}) == "");
  CHECK(dump.shell_fault("lnorm 'acts.npz:nothing*' -o y.npz",
                         {"acts.npz: there is no tensor that matches 'nothing*', only h.0.in"}) ==
        "");
  CHECK(dump.files() == before);
  CHECK(contains(dump.shell_output("lnorm 'acts.npz:h.[01].in' --to text"),
                 "h.0.in: float32, shape (2, 4, 16)\ntensor([[["));
  // A pattern may match one.
  CHECK(dump.shell_output("lnorm 'acts.npz:h.0.i*' -o a.npy && lnorm acts.npz:h.0.in -o b.npy && "
                          "cmp a.npy b.npy && echo same") == "same\n");
  dump.shell_output("lnorm 'acts.npz:h.[01].in' --save-mean m.json -o y.npz");
  CHECK(contains(dump.shell_output("lnorm show m.json"), "h.1.in  float64  (2, 4, 1)  64 B"));
}

TEST_CASE("a tensor whose name is empty is found among others", "[sets]") {
  const Dump dump;
  dump.write("x.json", R"({"": [1, 2], "b": [1, 1]})");
  dump.shell_output("lnorm 'x.json:*' -o y.json --eps 1");
  CHECK(dump.shell_output("lnorm check 'x.json:*' 'y.json:*' --eps 1 -q && echo same") == "same\n");
  CHECK(dump.shell_output("lnorm compare y.json y.json -q && echo same") == "same\n");
}

TEST_CASE("a member of JSON in the command line is named as that of a file is", "[sets]") {
  const Workplace at;
  const std::string weights = R"({"x": [2, 4], "y": 3})";
  CHECK(at.output({"[[1, 3]]", "--eps", "0", "--weight", weights + ":x"}) == "[[-2.0,4.0]]\n");
  CHECK(at.fault({"[[1, 3]]", "--weight", weights + ":z"},
                 {"--weight " + weights + ": there is no tensor 'z', only x, y"}) == "");
}

TEST_CASE("a literal name beats a pattern, and a file beats a member", "[sets]") {
  const Dump dump;
  dump.write("x.json", R"({"a*": [1, 2], "ab": [3, 5], "b": [1, 1]})");
  CHECK(dump.shell_output("lnorm show 'x.json:a*'") == "tensor([1., 2.], dtype=torch.float64)\n");
  CHECK(contains(dump.shell_output("lnorm show 'x.json:[a]*'"), "2 tensors"));
  dump.write("x.json:b", "[7, 8]");
  CHECK(dump.shell_output("lnorm show x.json:b") == "tensor([7., 8.], dtype=torch.float64)\n");
}

TEST_CASE("a member of every line is normalized, and the others are passed on", "[sets]") {
  const Dump dump;
  dump.write("rows.jsonl",
             "{\"id\": 7,  \"x\": [1, 3], \"y\": {\"x\": [0]}}\n\n{\"x\":[[2,2],[1,5]]}\n");
  CHECK(dump.shell_output("lnorm -:x --from jsonl --eps 0 --axes -1 < rows.jsonl; "
                          "lnorm rows.jsonl:x | head -n 1") ==
        "{\"id\": 7,  \"x\": [-1.0,1.0], \"y\": {\"x\": [0]}}\n"
        "{\"x\":[[NaN,NaN],[-1.0,1.0]]}\n"
        "{\"id\": 7,  \"x\": [-0.9999950000374996,0.9999950000374996], \"y\": {\"x\": [0]}}\n");
  dump.write("rows.jsonl", "{\"x\": [1, 3]}\n{\"z\": [1]}\n");
  const Outcome outcome = dump.shell("lnorm rows.jsonl:x");
  CHECK(outcome.status == 2);
  CHECK(contains(outcome.err, "rows.jsonl:2:1: there is no member 'x', only z"));
}

TEST_CASE("a line of statistics for every tensor", "[sets]") {
  const Dump dump;
  const std::string csv = dump.shell_output("lnorm stats acts.npz --csv");
  CHECK(std::count(csv.begin(), csv.end(), '\n') == 13);
  CHECK(csv.starts_with("tensor,"));
  // The table of one tensor has the same rows.
  const std::string all = dump.shell_output("lnorm stats acts.npz --all");
  CHECK(contains(all, dump.shell_output("lnorm stats acts.npz:h.5.in --all")));
  CHECK(dump.shell_fault("lnorm stats acts.npz --softmax", "--softmax --all"_w) == "");
  dump.write("empty.safetensors", safetensors("{}", ""));
  CHECK(dump.shell_output("lnorm show empty.safetensors") == "no tensors\n");
  CHECK(contains(dump.shell_output("lnorm show empty.safetensors --json"), "\"tensors\":[]"));
  dump.write("empty.json", "{}");
  CHECK(dump.shell_output("lnorm show empty.json") == "no tensors\n");
}

TEST_CASE("a folder is written whole or not at all", "[sets]") {
  const Dump dump;
  dump.shell_output("mkdir there; echo kept > there/h.0.in.npy; echo mine > there/notes");
  CHECK(dump.shell("lnorm 'acts.npz:*' --weight '[1, 2]' -o there/").status == 2);
  CHECK(dump.read("there/h.0.in.npy") == "kept\n");
  CHECK(dump.shell_output("ls -A there") == "h.0.in.npy\nnotes\n");
  dump.shell_output("lnorm 'acts.npz:*' -o there");
  CHECK(contains(dump.shell_output("lnorm show there"), "12 tensors"));
  CHECK(dump.read("there/notes") == "mine\n");
  CHECK(dump.shell_fault("lnorm 'acts.npz:*' -o no/such/",
                         {"-o no/such: No such file", "hint: mkdir -p no/such"}) == "");
  dump.write("up.json", R"({"../up": [1, 2], "b": [1, 2]})");
  CHECK(dump.shell_fault("lnorm 'up.json:*' -o out/", {"../up"}) == "");
  CHECK(!dump.has("out"));
  CHECK(!dump.has("up.npy"));
}

TEST_CASE("what a placeholder stands for is a name, and no pattern", "[sets]") {
  const Dump dump;
  dump.write("x.json", R"({"x[0]": [1, 3], "h.*": [1, 3]})");
  dump.write("w.json", R"({"x0": [2, 2], "h.1": [3, 3]})");
  CHECK(dump.shell_fault(
            "lnorm 'x.json:x*' --weight 'w.json:{}'",
            {"x.json:x[0]: --weight w.json: there is no tensor 'x[0]', only x0, h.1"}) == "");
  CHECK(dump.shell_fault("lnorm 'x.json:h.[*]' --weight 'w.json:{}'", {"'h.*'"}) == "");
}

TEST_CASE("with --keep-going all that can be done is done", "[sets]") {
  const Dump dump;
  dump.shell_output(
      "mkdir run; cp dump/h.0.in.npy run; ln -s nowhere run/gone.npy; mkfifo run/pipe.npy; "
      "echo junk > run/junk.npy");
  const Outcome listed = dump.shell("lnorm show run");
  CHECK(listed.status == 0);
  CHECK(contains(listed.out, "gone    (run/gone.npy: No such file or directory)"));
  CHECK(!contains(listed.out, "pipe"));
  const Outcome outcome = dump.shell("lnorm 'run:*' --keep-going -o y/");
  CHECK(outcome.status == 2);
  CHECK(std::count(outcome.err.begin(), outcome.err.end(), '\n') == 2);
  CHECK(dump.shell_output("ls y") == "h.0.in.npy\n");
  dump.write("rows.jsonl", "{\"x\": [1, 3]}\n{\"z\": [1]}\n{\"x\": [2, 2\n{\"x\": [5, 7]}\n");
  const Outcome lines = dump.shell("lnorm rows.jsonl:x --eps 0 --keep-going");
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
    CHECK(dump.shell_fault("lnorm rows.jsonl:x", {"rows.jsonl:1:"}) == "");
  }
  dump.write("rows.jsonl", R"({"x": [1, 3], "id": [NaN], "o": {"a": [{}]}})");
  CHECK(dump.shell_output("lnorm rows.jsonl:x --eps 0") ==
        "{\"x\": [-1.0,1.0], \"id\": [NaN], \"o\": {\"a\": [{}]}}\n");
}

TEST_CASE("a tensor cannot be left out of a header that a pipe has taken", "[sets]") {
  const Dump dump;
  damage_a_member(dump);
  const Outcome outcome = dump.shell("lnorm 'bad.npz:*' --keep-going | cat > y");
  CHECK(contains(outcome.err, "bad.npz:h.3.in: is damaged"));
  CHECK(contains(outcome.err, "standard output: tensor 'h.3.in' cannot be left out"));
  CHECK(contains(outcome.err, "hint: -o FILE has the others"));
}

TEST_CASE("an archive of nothing has no tensors", "[sets]") {
  const Dump dump;
  dump.write("nothing.npz", std::string("PK\5\6", 4) + std::string(18, '\0'));
  CHECK(dump.shell_output("lnorm show nothing.npz") == "no tensors\n");
  CHECK(dump.shell_fault("lnorm nothing.npz", {"nothing.npz: found no tensor"}) == "");
  for (const std::string option : {"--rms", "--eps 1", "--eps-on std"}) {
    CHECK(dump.shell_fault("lnorm stats acts.npz " + option, {"no effect", "--all"}) == "");
  }
}

TEST_CASE("a folder has one file for a name", "[sets]") {
  const Dump dump;
  dump.shell_output("lnorm 'acts.npz:h.[01].in' -o y/");
  CHECK(dump.fault("acts.npz:h.[01].in --dtype bfloat16 -o y/"_w,
                   {"y/h.0.in.npy", "y/h.0.in.safetensors", "hint: rm y/h.0.in.npy"}) == "");
  dump.write("dot.json", R"({".dot": [1, 2], "b": [1, 2]})");
  CHECK(dump.shell_fault("lnorm 'dot.json:*' -o z/", {"'.dot'", "begins with a dot"}) == "");
}
