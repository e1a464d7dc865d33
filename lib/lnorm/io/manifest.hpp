#pragma once

#include <optional>
#include <string>
#include <vector>

// Inputs for tests of kernels, in files, and the JSON document that says what they are for.
namespace lnorm {

// Tensors are named as files of the folder, or as members of the file of all of them; once read, as words of a command
// line.
struct InputCase {
  std::string name;
  std::string x;
  std::optional<std::string> weight;
  std::optional<std::string> bias;
  std::optional<std::string> dy;
  std::string purpose = {};             // why it exists
  std::vector<std::string> kills = {};  // ids of wrong kernels
};

struct Manifest {
  std::string generator = {};  // of its numbers, with the seed
  std::string options = {};    // of the normalization that they are for; empty: it does not say
  std::vector<InputCase> cases = {};
  // Ids of wrong kernels.
  std::vector<std::string> alive = {};                 // that no case tells
  std::vector<std::string> equivalent = {};            // that are right here, by formula
  std::vector<std::string> alive_without_affine = {};  // that x and dy alone do not tell
  std::vector<std::vector<std::string>> same = {};     // that are one formula here
};

std::string manifest_json(const Manifest& manifest);

// Where the manifest of a folder, or of a file of several tensors, is: manifest.json in the one, c.manifest.json beside
// c.npz.
std::string manifest_path(const std::string& inputs);

// Returns the folder or the file that a manifest describes; nothing if the path is no manifest, or the folder or file is not there.
std::optional<std::string> inputs_of_manifest(const std::string& path);

// Throws Error if the path is a file that is no manifest: a new manifest would replace it.
void check_replaced_manifest(const std::string& path);

// The cases and options of a folder or a file that has a manifest; nothing if it has none. Throws Error for what is no
// manifest.
std::optional<Manifest> read_manifest(const std::string& inputs);

}  // namespace lnorm
