#include <cmath>
#include <set>
#include <sstream>

#include "support/commands.hpp"

// Tensors that PyTorch computed (data/seeds), reproduced by the program.

namespace {

using namespace support;

enum class From { output, softmax, mean, rstd_as_denominator, rstd_as_variance };

struct Seed {
  std::string folder;
  std::string input;
  std::string expected;
  std::string options;  // * stands for the extension
  From from = From::output;
  double tolerance = 1e-6;  // float32's own error
};

const std::string kUnbiased = "--unbiased --eps 0";
const std::string kImage = "--axes -3,-2,-1";
const std::string kAffine = "--axes -2,-1 --weight gamma* --bias beta*";

// PyTorch computed var of layer_norm outputs biased, that of activations unbiased.
const std::vector<Seed> kSeeds{
    {"batch_seq_dim", "image.x", "image.y", kImage},
    {"batch_seq_dim", "image.x", "image.y_printed", kImage, From::output, 2e-4},
    {"batch_seq_dim", "question.x", "question.y", ""},
    {"batch_seq_dim", "question.x", "question.y_printed", "", From::output, 2e-4},
    {"batch_seq_dim", "question.x", "question.whole_sample_unbiased_eps0",
     "--axes -2,-1 " + kUnbiased},
    {"eps_on_std", "x", "layer_norm", ""},
    {"eps_on_std", "x", "eps_on_std", "--eps-on std"},
    {"gpt_part2", "activations", "activations.mean", "", From::mean},
    {"gpt_part2", "activations", "activations.mean_nokeepdim", "--no-keepdim", From::mean},
    {"gpt_part2", "activations", "activations.normalized_unbiased_eps0", kUnbiased},
    {"gpt_part2", "activations", "activations.var_unbiased", kUnbiased, From::rstd_as_variance},
    {"gpt_part2", "batch", "batch.layer_norm", ""},
    {"gpt_part2", "batch.layer_norm", "batch.layer_norm.var", "--eps 0", From::rstd_as_variance},
    {"lecture20", "activations", "activations.mean", "", From::mean},
    {"lecture20", "activations", "activations.normalized_unbiased_eps0", kUnbiased},
    {"lecture20", "activations", "activations.var_unbiased", kUnbiased, From::rstd_as_variance},
    {"lecture20", "batch", "batch.layer_norm", ""},
    {"lecture20", "batch", "batch.mean", "", From::mean},
    {"lecture20", "batch", "batch.var", "--eps 0", From::rstd_as_variance},
    {"lecture20", "batch.layer_norm", "batch.layer_norm.var", "--eps 0", From::rstd_as_variance},
    {"lecture20", "batch3", "batch3.layer_norm", ""},
    {"lecture20", "batch3.layer_norm", "batch3.layer_norm.var", "--eps 0", From::rstd_as_variance},
    {"lecture20", "batch3", "batch3.softmax", "", From::softmax, 1e-7},
    {"lecture20", "batch3.softmax", "batch3.softmax.var", "--eps 0", From::rstd_as_variance, 1e-9},
    {"step_by_step", "inputs", "layer_norm", kAffine},
    {"step_by_step", "inputs", "mean", "--axes -2,-1", From::mean},
    {"step_by_step", "inputs", "var", "--axes -2,-1 --eps 0", From::rstd_as_variance},
    {"step_by_step", "inputs", "denominator", "--axes -2,-1", From::rstd_as_denominator},
};

// With --save-mean or --save-rstd.
bool is_saved(From from) { return from != From::output && from != From::softmax; }

Words arguments(const Seed& seed, const std::string& extension, const std::string& stats_file) {
  Words words{seed.from == From::softmax ? "softmax" : "apply", seed.input + extension, "--to",
              "json"};
  std::istringstream options(seed.options);
  for (std::string word; options >> word;) {
    if (word.back() == '*') word.replace(word.size() - 1, 1, extension);
    words.push_back(word);
  }
  if (is_saved(seed.from)) {
    words.insert(words.end(),
                 {seed.from == From::mean ? "--save-mean" : "--save-rstd", stats_file});
  }
  return words;
}

double value(From from, double element) {
  if (from == From::rstd_as_denominator) return 1 / element;
  return from == From::rstd_as_variance ? 1 / (element * element) : element;
}

}  // namespace

TEST_CASE("the seeds from PyTorch are reproduced") {
  const Workplace directory;
  for (const Seed& seed : kSeeds) {
    const std::string folder = data_file("seeds/" + seed.folder);
    const Nested expected = parse_nested(read_file(folder + "/" + seed.expected + ".json"));
    for (const std::string extension : {".npy", ".json"}) {
      INFO(seed.folder << "/" << seed.expected << " from " << seed.input << extension);
      const std::string stats_file = directory / "stats.json";
      const std::string output =
          output_of({.arguments = arguments(seed, extension, stats_file), .directory = folder});
      const Nested actual = parse_nested(is_saved(seed.from) ? read_file(stats_file) : output);
      REQUIRE(actual.shape == expected.shape);
      for (std::size_t i = 0; i < expected.elements.size(); ++i) {
        INFO("element " << i);
        CHECK(std::fabs(value(seed.from, actual.elements[i]) - expected.elements[i]) <=
              seed.tolerance);
      }
    }
  }
}

TEST_CASE("no seed is forgotten") {
  std::set<std::string> known;
  for (const Seed& seed : kSeeds) {
    known.insert(seed.folder + "/" + seed.input);
    known.insert(seed.folder + "/" + seed.expected);
  }
  for (const std::string name : {"gamma", "beta"}) known.insert("step_by_step/" + name);
  for (const std::string& folder : list_directory(data_file("seeds"))) {
    for (const std::string& file : list_directory(data_file("seeds/" + folder))) {
      if (!file.ends_with(".json")) continue;
      INFO(folder << "/" << file);
      CHECK(known.count(folder + "/" + file.substr(0, file.size() - 5)) == 1);
    }
  }
}
