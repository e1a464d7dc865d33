
#include "support/commands.hpp"
#include "support/markdown.hpp"

// The script of docs/kernel-authors.md, as it is printed there, with commands in the place of the user's kernel.

namespace {

using namespace support;

const std::string kTorchOutputs = data_file("kernel/torch/");

// What PyTorch wrote.
const std::string kOwn = "cp \"" + kTorchOutputs + "$2.safetensors\" \"$4\"\n";

std::string script() {
  const std::string text = read_file(LNORM_SOURCE_DIR "/docs/kernel-authors.md");
  const std::vector<Words> found = blocks(text, "sh");
  REQUIRE(found.size() == 1);
  std::string lines;
  for (const std::string& line : found.front()) lines += line + '\n';
  return lines;
}

// The same, with the line for kernels whose statistics are in float32 in place of the one above it.
std::string script_for_float32_statistics() {
  const std::string text = script();
  const std::string comment = "# With float32 statistics: ";
  const std::size_t first = text.find("\njudge bfloat16 ") + 1;
  const std::size_t second = text.find(comment);
  REQUIRE((first != 0 && second != std::string::npos && first < second));
  return text.substr(0, first) + text.substr(second + comment.size());
}

// What the script says of a kernel that gets "--dtype DTYPE -o FILE".
Outcome judge(const std::string& kernel, const std::string& script, const TempDir& folder) {
  std::filesystem::create_directory(folder / "bin");
  std::filesystem::create_symlink(LNORM_BINARY, folder / "bin/lnorm");
  folder.write("bin/my_kernel", "#!/bin/sh\n" + kernel);
  std::filesystem::permissions(folder / "bin/my_kernel", std::filesystem::perms::owner_all);
  folder.write("judge.sh", script);
  return run({.arguments = {"judge.sh"},
              .directory = folder.path().string(),
              .environment = {{"PATH", folder / "bin:/usr/bin:/bin"}},
              .program = "/bin/sh"});
}

Outcome judge(const std::string& kernel, const std::string& script = ::script()) {
  const Workplace folder;
  return judge(kernel, script, folder);
}

// The last bytes of an .npy file, which are its elements.
std::string elements(const std::string& file, std::size_t bytes) {
  const std::string whole = read_file(data_file(file));
  REQUIRE(whole.size() > bytes);
  return whole.substr(whole.size() - bytes);
}

// The published kernel that adds eps to the standard deviation, without weight and bias: 4 rows of 20 in float32.
std::string eps_on_std() {
  const std::size_t bytes = 320;
  const std::string header = R"({"x":{"dtype":"F32","shape":[4,20],"data_offsets":[0,320]},)"
                             R"("y":{"dtype":"F32","shape":[4,20],"data_offsets":[320,640]},)"
                             R"("weight":{"dtype":"F32","shape":[20],"data_offsets":[640,720]},)"
                             R"("bias":{"dtype":"F32","shape":[20],"data_offsets":[720,800]}})";
  return safetensors(header, elements("seeds/eps_on_std/x.npy", bytes) +
                                 elements("seeds/eps_on_std/eps_on_std.npy", bytes) +
                                 bytes_of(std::vector<float>(20, 1)) +
                                 bytes_of(std::vector<float>(20, 0)));
}

const std::string all_pass = "float16 passes\nbfloat16 passes\nfloat32 passes\nfloat64 passes\n";
const std::string float32_fails =
    "float16 passes\nbfloat16 passes\nfloat32 fails\nfloat64 passes\n";

}  // namespace

TEST_CASE("the script for kernel authors lets PyTorch's kernels pass", "[cli]") {
  const Outcome outcome = judge(kOwn);
  CHECK(outcome.err == "");
  CHECK(outcome.out == all_pass);
  CHECK(outcome.status == 0);
}

TEST_CASE("the script for kernel authors tells where bfloat16 statistics are rounded", "[cli]") {
  const Outcome rounded = judge(kOwn, script_for_float32_statistics());
  CHECK(rounded.err == "failed: bfloat16\n");
  CHECK(rounded.status == 1);

  const std::string wide = "cp \"" + kTorchOutputs + "bfloat16_float32.safetensors\" \"$4\"\n";
  const Outcome outcome = judge("if [ $2 = bfloat16 ]; then " + wide + "else " + kOwn + "fi\n",
                                script_for_float32_statistics());
  CHECK(outcome.out == all_pass);
  CHECK(outcome.status == 0);
}

TEST_CASE("the script for kernel authors finds eps on the standard deviation, and goes on",
          "[cli]") {
  const Workplace folder;
  folder.write("wrong", eps_on_std());
  const Outcome outcome =
      judge("if [ $2 = float32 ]; then cp wrong \"$4\"; else " + kOwn + "fi\n", script(), folder);
  CHECK(outcome.out == float32_fails);
  CHECK(outcome.err == "failed: float32\n");
  CHECK(outcome.status == 1);
  CHECK(contains(folder.read("report_float32.json"), "min_sqnr\",\"found\":90."));
}

TEST_CASE("the script for kernel authors takes no error for a pass", "[cli]") {
  const std::string kernel =
      GENERATE_COPY(as<std::string>(), ":\n",  // writes nothing
                    "echo garbage >\"$4\"\n",  // no tensors
                    "head -c 50000 \"" + kTorchOutputs + "$2.safetensors\" >\"$4\"\n",  // cut off
                    kOwn + "exit 3\n");  // right, but fails
  CAPTURE(kernel);
  const Workplace folder;
  // What an earlier run has left behind does not count.
  for (const std::string dtype : {"float16", "bfloat16", "float32", "float64"}) {
    std::filesystem::copy(kTorchOutputs + dtype + ".safetensors",
                          folder / ("kernel_" + dtype + ".safetensors"));
  }
  const Outcome outcome =
      judge("if [ $2 = float32 ]; then\n" + kernel + "else " + kOwn + "fi\n", script(), folder);
  CHECK(outcome.out == float32_fails);
  CHECK(outcome.err.ends_with("failed: float32\n"));
  CHECK(outcome.status == 1);
  CHECK_FALSE(std::filesystem::exists(folder / "report_float32.json"));
}
