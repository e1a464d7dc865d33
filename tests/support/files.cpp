#include "support/files.hpp"

#include <stdlib.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

namespace support {

namespace {

void flatten(const nlohmann::json& value, std::size_t depth, Nested& to) {
  if (!value.is_array()) {
    if (depth != to.shape.size()) throw std::runtime_error("ragged");
    to.elements.push_back(value.get<double>());
    return;
  }
  const auto count = static_cast<std::int64_t>(value.size());
  if (depth == to.shape.size() && to.elements.empty()) to.shape.push_back(count);
  if (depth >= to.shape.size() || to.shape[depth] != count) throw std::runtime_error("ragged");
  for (const auto& element : value) flatten(element, depth + 1, to);
}

}  // namespace

TempDir::TempDir() {
  std::string name = (std::filesystem::temp_directory_path() / "lnorm-test-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make " + name);
  path_ = name;
}

TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + path.string());
  std::ostringstream bytes;
  if (in.peek() != std::ifstream::traits_type::eof()) bytes << in.rdbuf();
  return std::move(bytes).str();
}

void write_file(const std::filesystem::path& path, std::string_view bytes) {
  std::ofstream out(path, std::ios::binary);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!out.flush()) throw std::runtime_error("cannot write " + path.string());
}

std::string difference(std::string_view actual, std::string_view expected) {
  if (actual == expected) return {};
  const auto at = std::mismatch(actual.begin(), actual.end(), expected.begin(), expected.end());
  return std::to_string(actual.size()) + " bytes, expected " + std::to_string(expected.size()) +
         ", different from byte " + std::to_string(at.first - actual.begin());
}

std::vector<std::string> list_directory(const std::filesystem::path& path) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string npy(std::string_view descr, const std::vector<std::int64_t>& shape,
                std::string_view bytes) {
  std::string extents;
  for (const auto extent : shape) {
    extents += (extents.empty() ? "" : ", ") + std::to_string(extent);
  }
  if (shape.size() == 1) extents += ',';
  std::string file("\x93NUMPY\x01\x00\x76\x00", 10);
  file.append("{'descr': '").append(descr).append("', 'fortran_order': False, 'shape': (");
  file.append(extents).append("), }");
  if (file.size() > 127) throw std::runtime_error("the header is too long");
  file.resize(127, ' ');
  return file.append("\n").append(bytes);
}

std::string safetensors(std::string_view header, std::string_view data) {
  std::string file;
  for (std::size_t i = 0; i < 8; ++i) {
    file += static_cast<char>(static_cast<std::uint64_t>(header.size()) >> (8 * i) & 0xff);
  }
  return file.append(header).append(data);
}

Nested parse_nested(std::string_view json) {
  Nested nested;
  flatten(nlohmann::json::parse(json), 0, nested);
  return nested;
}

}  // namespace support
