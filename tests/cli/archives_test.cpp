#include <chrono>
#include <fstream>
#include <utility>

#include "lnorm/core/text.hpp"
#include "support/commands.hpp"
#include "support/gguf.hpp"
#include "support/zip.hpp"

// Files of several tensors, .npz, .safetensors and .gguf, and bfloat16 in .npy.

using namespace support;
using lnorm::concat;

TEST_CASE("input, weight and bias come from one archive") {
  const Workplace at;
  at.write("x.npz", zip({{"x.npy", npy_of_floats({1, 3})},
                         {"weight.npy", npy_of_floats({2, 3}), true},
                         {"bias.npy", npy_of_floats({10, 20})}}));
  at.write("x.safetensors", safetensors("{" + safetensors_entry("x", "F32", "[2]", 0, 8) + "," +
                                            safetensors_entry("weight", "F32", "[2]", 8, 16) + "," +
                                            safetensors_entry("bias", "F32", "[2]", 16, 24) + "}",
                                        bytes_of<float>({1, 3, 2, 3, 10, 20})));
  for (const std::string file : {"x.npz", "x.safetensors"}) {
    CAPTURE(file);
    const Words words{file + ":x", "--weight", file + ":weight", "--bias", file + ":bias",
                      "--eps",     "0",        "--to",           "json"};
    CHECK(at.output(words) == "[8.0,23.0]\n");
  }
  CHECK(at.output("x.npz:x --eps 0"_w) == npy_of<float>({2}, {-1, 1}));
  CHECK(at.output("-:x --eps 0 --to json"_w, file(at / "x.npz")) == "[-1.0,1.0]\n");
  CHECK(fault_of({"-:x"},
                 {"standard input", "pipe", "directory is at its end", "hint: name the file"},
                 pipe_of(at.read("x.npz"))) == "");
  CHECK(at.fault({"x.npz"}, {"x, weight, bias", "expected one", "hint: name one: "}) == "");
}

TEST_CASE("an archive that NumPy has compressed is the same as its arrays") {
  const std::string file = data_file("archives/compressed.npz");
  CHECK(output_of({"show", file}) ==
        "x       float32  (20, 300)  23.4 KiB\n"
        "weight  float32  (300)      1.17 KiB\n"
        "bias    float64  (300)      2.34 KiB\n"
        "3 tensors, 27.0 KiB\n");
  std::vector<float> x;
  for (int i = 0; i < 6000; ++i) x.push_back(static_cast<float>(i % 7));
  const Workplace at;
  at.write("x.npy", npy_of<float>({20, 300}, x));
  const Words affine{"--weight", file + ":weight", "--bias", file + ":bias"};
  for (const std::string axis : {"0", "1"}) {
    Words of_npz{file + ":x", "--axis", axis};
    Words of_npy{at / "x.npy", "--axis", axis};
    if (axis == "1") {
      of_npz += affine;
      of_npy += affine;
    }
    CHECK(output_of(of_npz) == output_of(of_npy));
  }
  CHECK(contains(at.output({"compare", file + ":x", "x.npy"}), "agree"));
}

TEST_CASE("a sum that is wrong is found whatever is done with the member") {
  const Workplace at;
  const std::string bytes = npy("<f4", {1000, 100}, std::string(400'000, '\0'));
  for (const bool deflated : {false, true}) {
    const ZipEntry entry{.name = "x.npy", .bytes = bytes, .deflated = deflated, .crc = 1};
    at.write("x.npz", zip({entry}));
    for (const Words& command : {Words{"apply"}, {"stats"}, {"softmax"}, "apply --axis 0"_w}) {
      Words words = command;
      words.push_back(at / "x.npz:x");
      if (command[0] != "stats") words += {"-o", at / "y.npy"};
      CHECK(fault_of(words, {"x.npz:x", "CRC-32"}) == "");
    }
    CHECK(at.fault("show x.npz:x"_w, {"x.npz:x", "CRC-32"}) == "");
    CHECK(at.fault("compare x.npz:x x.npz:x"_w, {"CRC-32"}) == "");
  }
  CHECK(!std::filesystem::exists(at / "y.npy"));
}

TEST_CASE("a file of tensors is listed, a member of it shown") {
  const Workplace at;
  at.write("x.npz", zip({{"a.npy", npy_of_floats({1, 2})},
                         {"a longer \x1b name.npy", npy("<i2", {}, "\1\0")},
                         {"objects.npy", npy("|O", {2}, "")},
                         {"b.npy", npy("<V2", {1, 2}, "\x80\x3f\0\x40")}}));
  at.write("x.safetensors",
           safetensors("{" + safetensors_entry("ln_1.weight", "F16", "[2,1]", 0, 4) + "," +
                           safetensors_entry("q", "F8_E5M2FNUZ", "[4]", 4, 8) + "," +
                           safetensors_entry("n", "BOOL", "[0]", 8, 8) + "}",
                       std::string(8, '\0')));
  CHECK(at.output("show x.npz"_w) ==
        "a                   float32  (2)  8 B\n"
        "a longer \\x1b name  int16    ()   2 B\n"
        "objects             object\n"
        "b                   <V2\n"
        "2 tensors, 10 B; 2 that cannot be read\n");
  CHECK(at.output("show x.npz --as bfloat16"_w)
            .ends_with("bfloat16  (1, 2)  4 B\n3 tensors, 14 B; 1 that cannot be read\n"));
  const std::string listed =
      "ln_1.weight  float16      (2, 1)  4 B\n"
      "n            bool         (0)     0 B\n"
      "q            F8_E5M2FNUZ  (4)     4 B\n"
      "3 tensors, 8 B\n";
  CHECK(at.output("show x.safetensors"_w) == listed);
  CHECK(output_of({"show"}, pipe_of(at.read("x.safetensors"))) == listed);
  CHECK(at.output("show x.npz:a"_w) == "tensor([1., 2.])\n");
  CHECK(contains(at.output("show x.safetensors:ln_1.weight --header"_w),
                 "x.safetensors:ln_1.weight: float16, shape (2, 1)\n"));
  CHECK(at.fault("show x.safetensors:q"_w, {"x.safetensors:q", "F8_E5M2FNUZ"}) == "");
  CHECK(fault_of({"show"}, {"goes on"}, pipe_of(safetensors("{}", "1"))) == "");
}

TEST_CASE("a tensor goes to .safetensors and back") {
  const Workplace at;
  const std::string x = data_file("sample.npy");
  at.output({x, "-o", "y.npy"});
  at.output({x, "-o", "y.safetensors"});
  CHECK(at.output("show y.safetensors"_w) == "sample  float32  (2, 3, 4)  96 B\n1 tensor, 96 B\n");
  CHECK(at.output("show y.safetensors:sample"_w) == at.output("show y.npy"_w));
  CHECK(contains(at.output("compare y.safetensors y.npy --rtol 0 --atol 0"_w), "agree"));
  const std::string y = at.read("y.npy").substr(128);
  const std::string header = R"({"sample":{"dtype":"F32","shape":[2,3,4],"data_offsets":[0,96]}})";
  const std::string padded = header + std::string((8 - header.size() % 8) % 8, ' ');
  CHECK(at.read("y.safetensors") == safetensors(padded, y));
  CHECK(output_of("--to safetensors --name sample"_w, pipe_of(read_file(x))) ==
        safetensors(padded, y));

  const auto name_of = [&](const Words& words, const std::string& in) {
    const std::string file = output_of(words, pipe_of(in));
    return file.substr(10, file.find('"', 10) - 10);
  };
  CHECK(name_of("--to safetensors"_w, "[1]") == "x");
  CHECK(name_of("-:a --to safetensors"_w, R"({"a": [1]})") == "a");
  CHECK(name_of({"softmax", x, "--to", "safetensors"}, "") == "sample");
  CHECK(name_of({"softmax", x, "--to", "safetensors", "--name", "\u00e9"}, "") == "\u00e9");

  // Every dtype that is written, in order and at positions.
  for (const std::string dtype :
       {"float8_e4m3fn", "float8_e5m2", "float16", "bfloat16", "float32", "float64"}) {
    CAPTURE(dtype);
    at.output({x, "--dtype", dtype, "-o", "z.safetensors"});
    CHECK(output_of({x, "--dtype", dtype, "--to", "safetensors"}) == at.read("z.safetensors"));
    CHECK(at.output("show z.safetensors:sample"_w) ==
          output_of({x, "--dtype", dtype, "--to", "text"}));
  }

  at.output({x, "-o", "y.npy", "--save-mean", "m.safetensors", "--save-rstd", "r.safetensors",
             "--no-keepdim"});
  CHECK(at.output("show m.safetensors"_w) == "mean  float64  (2, 3)  48 B\n1 tensor, 48 B\n");
  CHECK(at.output("show r.safetensors"_w) == "rstd  float64  (2, 3)  48 B\n1 tensor, 48 B\n");
}

TEST_CASE("bfloat16 in .npy is V2, read where --as says so and written so") {
  const Workplace at;
  const std::string bits = bytes_of<std::uint16_t>({0x3f80, 0x4040, 0xbf80, 0x0000});
  const std::string out = bytes_of<std::uint16_t>({0xbf80, 0x3f80, 0xbf80, 0x3f80});
  for (const std::string descr : {"<V2", "|V2", "=V2", "V2", "bfloat16"}) {
    CAPTURE(descr);
    at.write("x.npy", npy(descr, {2, 2}, bits));
    CHECK(at.output("x.npy --as bfloat16 --eps 0 --to json"_w) == "[[-1.0,1.0],[-1.0,1.0]]\n");
    CHECK(at.fault({"x.npy"}, {"'" + descr + "'", "hint: --as bfloat16"}) == "");
  }
  at.write("big.npy", npy(">V2", {2, 2}, bits));
  CHECK(at.fault("big.npy --as bfloat16"_w, {"'>V2'"}) == "");
  const std::string x = npy("<V2", {2, 2}, bits);
  at.write("x.npy", x);
  const Words to_npy = "--as bfloat16 --eps 0 --to npy"_w;
  const auto of = [&](const std::string& input) { return Words{input} + to_npy; };
  const std::string y = at.output(of("x.npy"));
  CHECK(contains(y, "'descr': '<V2'"));
  CHECK(y.substr(y.size() - out.size()) == out);
  CHECK(output_of(to_npy, pipe_of(x)) == y);
  // The same bytes out as in.
  at.write("y.npy", y);
  CHECK(at.output(of("y.npy")) == y);
  // Which cannot tell what it is; so without a word of the format it is another.
  const std::string z = at.output("x.npy --as bfloat16 --eps 0"_w);
  CHECK(contains(z, R"("x":{"dtype":"BF16","shape":[2,2])"));
  CHECK(z.ends_with(out));

  // Where it does not apply, it changes nothing for weight, bias and compare.
  at.write("w.npy", npy_of_floats({2, 2}));
  at.write("w2.npy", npy("<V2", {2}, bytes_of<std::uint16_t>({0x4000, 0x4000})));
  const auto weighted = [&](const std::string& weight) {
    return at.output(
        {"x.npy", "--as", "bfloat16", "--eps", "0", "--to", "json", "--weight", weight});
  };
  CHECK(weighted("w.npy") == "[[-2.0,2.0],[-2.0,2.0]]\n");
  CHECK(weighted("w2.npy") == "[[-2.0,2.0],[-2.0,2.0]]\n");
  CHECK(at.run("compare w.npy w2.npy --as bfloat16"_w).status == 0);
  CHECK(at.output("show w2.npy --as bfloat16"_w) == "tensor([2., 2.], dtype=torch.bfloat16)\n");
  CHECK(at.run("stats x.npy --as bfloat16"_w).status == 0);
  at.write("x.npz", zip({{"x.npy", x}}));
  CHECK(at.output(of("x.npz")) == y);
}

TEST_CASE("of a large .safetensors only the tensor that is named is read") {
  constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
  const Workplace at;
  const std::string path = at / "x.safetensors";
  const std::string start = safetensors(
      "{" + safetensors_entry("before", "F32", "[1073741823]", 0, 4 * kGiB - 4) + "," +
          safetensors_entry("x", "F32", "[2]", 4 * kGiB - 4, 4 * kGiB + 4) + "," +
          safetensors_entry("after", "U8", "[1073741824]", 4 * kGiB + 4, 5 * kGiB + 4) + "}",
      "");
  write_file(path, start);
  std::filesystem::resize_file(path, start.size() + 4 * kGiB - 4);
  std::ofstream(path, std::ios::binary | std::ios::app) << bytes_of<float>({1, 3});
  std::filesystem::resize_file(path, start.size() + 5 * kGiB + 4);

  const long least = run({"show"}, pipe_of("1")).peak_kib;
  for (const Words& words : {Words{path + ":x", "--eps", "0", "--to", "json"},
                             {"softmax", path + ":x", "--to", "json"},
                             {"stats", path + ":x"},
                             {"show", path + ":x"},
                             {"show", path}}) {
    CAPTURE(words);
    const auto begin = std::chrono::steady_clock::now();
    const Outcome outcome = run(words);
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    CHECK(outcome.status == 0);
    CHECK(taken.count() < 1);
    CHECK(outcome.cpu_seconds < 0.5);
    CHECK(outcome.peak_kib < least + 16 * 1024);
  }
  CHECK(output_of({path + ":x", "--eps", "0", "--to", "json"}) == "[-1.0,1.0]\n");
  std::filesystem::resize_file(path, start.size() + 5 * kGiB + 3);
  CHECK(fault_of({path + ":x"}, {path, "cut off"}) == "");
  std::filesystem::resize_file(path, start.size() + 5 * kGiB + 5);
  CHECK(fault_of({path + ":x"}, {path, "goes on"}) == "");
}

TEST_CASE("no header of a .safetensors costs much", "[many]") {
  const Workplace at;
  const std::string path = at / "x.safetensors";
  const auto check = [&](const std::string& header, const std::string& what) {
    CAPTURE(what);
    write_file(path, safetensors(header, ""));
    const Outcome outcome = run({"show", path + ":nobody"});
    CHECK(refusal_fault(outcome, {path, what}) == "");
    CHECK(outcome.err.size() < 1000 + path.size());
#ifndef LNORM_SANITIZED  // which needs much more itself
    CHECK(outcome.cpu_seconds < 5);
    CHECK(outcome.peak_kib < 256 * 1024);
#endif
  };
  const auto repeated = [](int count, const auto& text) {
    std::string all;
    for (int i = 0; i < count; ++i) all += (i > 0 ? "," : "") + text(i);
    return all;
  };
#ifndef LNORM_SANITIZED  // where it takes a minute
  const auto empty = [](int i) { return safetensors_entry(std::to_string(i), "U8", "[0]", 0, 0); };
  std::string million = "{" + repeated(1'000'000, empty);
  check(million + "}", "'nobody'");
  // What this process holds counts as the program's peak as well.
  check(std::exchange(million, {}) + "," + empty(1'000'000) + "}", "more than 1000000 tensors");
#endif
  const std::string shape = "[" + repeated(63, [](int) { return std::string("1"); }) + ",0]";
  check(
      "{" +
          repeated(63'000,
                   [&](int i) { return safetensors_entry(std::to_string(i), "U8", shape, 0, 0); }) +
          "}",
      "more than 4000000 dimensions");
  check(R"({"__metadata__":{)" +
            repeated(1'000'001, [](int i) { return '"' + std::to_string(i) + R"(":"")"; }) + "}}",
        "more than 1000000 entries");
  check("{\"" + std::string(20'000'000, 'a') + "\":1}", "goes on for more than");
  check("{" + std::string(20'000'000, ' ') + "}", "goes on for more than");
  check("{" +
            repeated(6,
                     [](int i) {
                       return safetensors_entry(std::string(10'000'000, static_cast<char>('a' + i)),
                                                "U8", "[0]", 0, 0);
                     }) +
            "}",
        "the names have more than");
  check(std::string(20'000'000, '['), "expected '{'");
  check(R"({"a":)" + std::string(20'000'000, '['), "is a list");
}

TEST_CASE("a GGUF file has the tensors of a safetensors file, bit for bit") {
  const std::string file = data_file("gguf/dtypes.gguf");
  const std::string other = data_file("gguf/dtypes.safetensors");
  CHECK(contains(output_of({"compare", file, other, "--max-ulp", "0"}), "10 tensors: 10 agree"));
  for (const std::string dtype : {"F32", "F16", "BF16", "F64", "I8", "I16", "I32", "I64"}) {
    CAPTURE(dtype);
    const std::string name = ":blk.0." + dtype;
    CHECK(output_of({"show", file + name}) == output_of({"show", other + name}));
    CHECK(output_of({"stats", file + name, "--csv"}) ==
          output_of({"stats", other + name, "--csv"}));
    CHECK(output_of({file + name, "--axes", "0,2", "--to", "npy"}) ==
          output_of({other + name, "--axes", "0,2", "--to", "npy"}));
  }
  CHECK(output_of({"show"}, support::file(data_file("gguf/version2.gguf"))) ==
        "x  float16  (2, 2)  8 B\ny  int8     (1)     1 B\n2 tensors, 9 B\n");
}

TEST_CASE("quantized tensors of a GGUF file are listed, and others beside them read") {
  const std::string model = data_file("gguf/model.gguf");
  const std::string listed = output_of({"show", model});
  CHECK(contains(listed, "token_embd.weight        Q6_K     (2, 256)  420 B\n"));
  CHECK(contains(listed, "blk.0.attn_q.weight      Q8_0     (2, 32)    68 B\n"));
  CHECK(contains(listed, "15 tensors, 1.37 KiB\n"));
  CHECK(contains(output_of({"show", model, "--json"}), R"("dtype":"Q4_K","shape":[1,256])"));
  CHECK(fault_of({"show", model + ":blk.0.attn_q.weight"},
                 {"is quantized as Q8_0", "expected I8 to I64", "hint: in Python"}) == "");
  CHECK(fault_of({model + ":*"}, {"is quantized as Q6_K"}) == "");
  CHECK(contains(output_of({"stats", model + ":*norm*"}), "blk.11.attn_norm.weight"));
  const Workplace at;
  CHECK(at.run({model + ":*", "--keep-going", "-o", "y.npz"}).status == 2);
  CHECK(lines_of(at.output("show y.npz"_w)).size() == 13);
  CHECK(at.output({data_file("gpt2/acts.npz:h.*.in"), "--weight",
                   model + ":blk.{1}.attn_norm.weight", "--rms", "-o", "y.npz"}) == "");
  CHECK(at.output(
            {data_file("gpt2/acts.npz:h.*.in"), "--weight",
             data_file("gpt2/model.safetensors.index.json:model.layers.{1}.input_layernorm.weight"),
             "--zero-centered-weight", "--rms", "-o", "z.npz"}) == "");
  CHECK(contains(at.output("compare y.npz z.npz"_w), "12 agree"));
}

TEST_CASE("norm weights that a GGUF file has as weight + 1 are said to be that, once for all") {
  const Workplace at;
  // 13 layers of two norms, in two shards, as a converter of Gemma writes them.
  std::string shards[2];
  std::string map;
  std::vector<std::string> tensors;
  std::vector<float> plus_one;
  for (int i = 0; i < 26; ++i) {
    const std::string layer = std::to_string(i / 2);
    const std::string name = concat("model.layers.", layer,
                                    i % 2 == 0 ? ".input_layernorm" : ".post_attention_layernorm");
    map += concat(i == 0 ? "" : ", ", '"', name, ".weight\": \"", i < 12 ? "a" : "b",
                  ".safetensors\"");
    std::string& shard = shards[i < 12 ? 0 : 1];
    shard += concat(shard.empty() ? "{" : ", ", '"', name, ".weight\": [");
    for (int k = 0; k < 16; ++k) {
      const float weight = static_cast<float>((i * 7 + k * 5) % 61 - 30) / 64;
      shard += concat(k == 0 ? "" : ", ", std::to_string(weight));
      plus_one.push_back(weight + 1);
    }
    shard += "]";
    tensors.push_back(
        gguf_tensor(concat("blk.", layer, i % 2 == 0 ? ".attn_norm.weight" : ".ffn_norm.weight"),
                    {16}, 0, static_cast<std::uint64_t>(i) * 64));
  }
  const auto write_gguf = [&] {
    const std::string data(reinterpret_cast<const char*>(plus_one.data()), plus_one.size() * 4);
    at.write("model.gguf", gguf({}, tensors, data));
  };
  write_gguf();
  at.write("a.json", shards[0] + "}");
  at.write("b.json", shards[1] + "}");
  for (const std::string shard : {"a", "b"}) {
    at.output({"convert", shard + ".json", "--dtype", "bfloat16", "-o", shard + ".safetensors"});
  }
  at.write("model.safetensors.index.json", "{\"weight_map\": {" + map + "}}");
  const Words compare{"compare",
                      "model.gguf",
                      "model.safetensors.index.json",
                      "--only",
                      "*norm*",
                      "--rename",
                      "blk.*.attn_norm.weight=model.layers.{1}.input_layernorm.weight",
                      "--rename",
                      "blk.*.ffn_norm.weight=model.layers.{1}.post_attention_layernorm.weight"};
  const Outcome all = at.run(compare);
  CHECK(all.status == 1);
  CHECK(contains(all.out, "\nactual = expected + 1 in all 26\n26 tensors: 0 agree, 26 differ"));
  CHECK(contains(at.run(compare + "--json"_w).out, R"("fit":{"scale":1.0,"offset":1.0})"));
  // One is not, and the others are named.
  for (std::size_t k = 0; k < 16; ++k) plus_one[5 * 16 + k] += static_cast<float>(k % 3);
  write_gguf();
  CHECK(contains(at.run(compare).out, "\nactual = expected + 1 in 25: model.layers.0."));
}

TEST_CASE("a GGUF file in a pipe, or under another format's name, is told") {
  const std::string model = read_file(data_file("gguf/model.gguf"));
  CHECK(fault_of({"show"}, {"standard input", "GGUF file", "pipe", "hint: name the file"},
                 pipe_of(model)) == "");
  const Workplace at;
  at.write("x.bin", model);
  CHECK(contains(at.output("show x.bin"_w), "15 tensors"));
  at.write("x.gguf", "[1, 2]");
  CHECK(at.output("show x.gguf"_w) == "tensor([1., 2.], dtype=torch.float64)\n");
  CHECK(at.fault("show x.gguf --from gguf"_w, {"GGUF header, byte 0", "expected 'GGUF'"}) == "");
  at.write("cut.gguf", model.substr(0, model.size() - 1));
  CHECK(at.fault("show cut.gguf"_w, {"cut.gguf: GGUF header, byte", "goes beyond the file"}) == "");
}

TEST_CASE("a GGUF header that claims a lot takes little memory and time") {
  const Workplace at;
  std::vector<std::string> tensors;
  for (int i = 0; i < 100'000; ++i) tensors.push_back(gguf_tensor(std::to_string(i), {}, 24, 0));
  at.write("many.gguf", gguf({}, tensors, "x"));
  CHECK(at.fault("show many.gguf"_w, {"many.gguf: GGUF header, byte", "overlap"}) == "");
  tensors.back() = gguf_tensor("0", {}, 24, 0);
  at.write("twice.gguf", gguf({}, tensors, "x"));
  CHECK(at.fault("show twice.gguf"_w, {"tensor '0' is there twice"}) == "");
}
