#include "support/commands.hpp"

// Published layers in their order of rounding, each step computed by PyTorch in float64 (data/rounding/make.py).

namespace {

using namespace support;

struct Layer {
  std::string name;
  Words options;  // of which T: is the file
};

const std::vector<Layer>& layers() {
  static const std::vector<Layer> all{
      {"llama", "--rms --round xhat"_w},
      {"gemma", "--rms --zero-centered-weight"_w},
      {"fused", "--rms --residual T:residual --round sum,xhat"_w},
      {"triton", "--residual T:residual --bias T:bias"_w},
      {"onnx", "--bias T:bias --round xhat,product"_w},
  };
  return all;
}

Command command_of(const Layer& layer, const std::string& file) {
  Command command;
  command.arguments = {file + ":x", "--weight", file + ":weight", "--eps",
                       "1e-6",      "--to",     "safetensors"};
  for (std::string option : layer.options) {
    if (option.starts_with("T:")) option.replace(0, 1, file);
    command.arguments.push_back(option);
  }
  return command;
}

}  // namespace

TEST_CASE("published layers round where they do, and nowhere else", "[rounding]") {
  for (const std::string dtype : {"bfloat16", "float16"}) {
    const std::string file = data_file("rounding/" + dtype + ".safetensors");
    for (const Layer& layer : layers()) {
      const std::string y = output_of(command_of(layer, file));
      for (const Layer& other : layers()) {
        CAPTURE(dtype, layer.name, other.name);
        const Outcome outcome =
            run({"compare", "-", file + ":" + other.name, "--max-ulp", "0", "-q"}, pipe_of(y));
        CHECK(outcome.status == (other.name == layer.name ? 0 : 1));
      }
    }
  }
}
