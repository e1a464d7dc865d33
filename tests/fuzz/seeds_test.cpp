
#include "fuzz/targets.hpp"
#include "support/catch.hpp"
#include "support/files.hpp"

// What the fuzzers start from, and what they have found, without a fuzzer.

namespace {

using namespace support;
namespace fs = std::filesystem;
using Target = int(const std::uint8_t*, std::size_t);

int pass(Target* target, const std::string& bytes) {
  return target(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
}

// Passes all files of a folder, perhaps of one ending only; returns how many they were.
int pass_all(Target* target, const std::string& folder, const std::string& ending = "") {
  int count = 0;
  for (const auto& entry : fs::directory_iterator(data_file(folder))) {
    const std::string path = entry.path().string();
    if (!path.ends_with(ending)) continue;
    INFO(path);
    CHECK_NOTHROW(pass(target, read_file(path)));
    ++count;
  }
  return count;
}

// The seeds of a format's fuzzer, and the corpus.
void pass_format(Target* target, const std::string& format) {
  CHECK(pass_all(target, "fuzz/" + format) > 0);
  CHECK(pass_all(target, "corpus/good", "." + format) > 0);
  CHECK(pass_all(target, "corpus/bad", "." + format) > 0);
}

}  // namespace

TEST_CASE("npy files keep what is promised of any bytes", "[fuzz]") {
  pass_format(fuzz_npy, "npy");
}

TEST_CASE("npz files keep what is promised of any bytes", "[fuzz]") {
  pass_format(fuzz_npz, "npz");
}

TEST_CASE("safetensors files keep what is promised of any bytes", "[fuzz]") {
  pass_format(fuzz_safetensors, "safetensors");
}

TEST_CASE("files of PyTorch keep what is promised of any bytes", "[fuzz]") {
  CHECK(pass_all(fuzz_torch, "fuzz/torch") > 0);
  CHECK(pass_all(fuzz_torch, "torch", ".pt") > 0);
}

TEST_CASE("ONNX tensors keep what is promised of any bytes", "[fuzz]") {
  CHECK(pass_all(fuzz_onnx, "fuzz/onnx") > 0);
  CHECK(pass_all(fuzz_onnx, "onnx", ".pb") > 0);
}

TEST_CASE("GGUF files keep what is promised of any bytes", "[fuzz]") {
  CHECK(pass_all(fuzz_gguf, "fuzz/gguf") > 0);
  CHECK(pass_all(fuzz_gguf, "gguf", ".gguf") > 0);
}

TEST_CASE("JSON files keep what is promised of any bytes", "[fuzz]") {
  pass_format(fuzz_json, "json");
}

TEST_CASE("runs of the program keep what is promised of any input", "[fuzz]") {
  CHECK(pass_all(fuzz_program, "fuzz/program") > 0);
  // Every command, more than there are, with every small file; under the sanitizers, where the fuzzers do the
  // same, some of them.
#ifdef LNORM_SANITIZED
  constexpr int kStep = 7;
#else
  constexpr int kStep = 3;
#endif
  int first = 0;
  for (const auto& entry : fs::directory_iterator(data_file("corpus/good"))) {
    if (entry.file_size() > 1024) continue;
    const std::string bytes = read_file(entry.path());
    for (int command = first++ % kStep; command < 40; command += kStep) {
      CAPTURE(entry.path().string(), command);
      CHECK_NOTHROW(pass(fuzz_program, std::string(1, static_cast<char>(command)) + bytes));
    }
  }
}
