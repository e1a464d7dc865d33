#include "support/files.hpp"

#include <stdlib.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <numeric>
#include <sstream>
#include <stdexcept>

#include "support/json.hpp"

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

std::string TempDir::read(std::string_view name) const { return read_file(path_ / name); }

void TempDir::write(std::string_view name, std::string_view bytes) const {
  std::filesystem::create_directories((path_ / name).parent_path());
  write_file(path_ / name, bytes);
}

std::vector<std::string> TempDir::files() const { return list_directory(path_); }

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

std::string in_fortran_order(std::string npy_file) {
  return npy_file.replace(npy_file.find("False"), 5, "True ");
}

void write_sparse_npy(const std::filesystem::path& path, const std::vector<std::int64_t>& shape,
                      float first, float last) {
  write_file(path, npy("<f4", shape, bytes_of<float>({first})));
  std::filesystem::resize_file(path, static_cast<std::uintmax_t>(128 + 4 * product(shape) - 4));
  std::ofstream(path, std::ios::binary | std::ios::app) << bytes_of<float>({last});
}

std::int64_t product(const std::vector<std::int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

std::string swapped(std::string bytes, std::size_t item) {
  for (auto at = bytes.begin(); at != bytes.end(); at += static_cast<std::ptrdiff_t>(item)) {
    std::reverse(at, at + static_cast<std::ptrdiff_t>(item));
  }
  return bytes;
}

std::uint64_t little_endian(std::string_view bytes, std::size_t size) {
  std::uint64_t value = 0;
  for (std::size_t i = size; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes.at(i));
  return value;
}

std::string safetensors(std::string_view header, std::string_view data) {
  std::string file;
  for (std::size_t i = 0; i < 8; ++i) {
    file += static_cast<char>(static_cast<std::uint64_t>(header.size()) >> (8 * i) & 0xff);
  }
  return file.append(header).append(data);
}

std::string safetensors_entry(std::string_view name, std::string_view dtype, std::string_view shape,
                              std::uint64_t begin, std::uint64_t end) {
  std::string text = "\"";
  text.append(name).append(R"(":{"dtype":")").append(dtype).append(R"(","shape":)").append(shape);
  text.append(R"(,"data_offsets":[)").append(std::to_string(begin)).append(",");
  return text.append(std::to_string(end)).append("]}");
}

std::string waves(const std::vector<std::int64_t>& shape, double step) {
  std::vector<float> values(static_cast<std::size_t>(product(shape)));
  std::int64_t i = 0;
  for (float& value : values) {
    value = static_cast<float>(std::sin(step * static_cast<double>(i * i % 100'003)) +
                               static_cast<double>(i % 11));
    ++i;
  }
  return npy_of<float>(shape, values);
}

Nested parse_nested(std::string_view json) {
  Nested nested;
  flatten(parsed_json(json), 0, nested);
  return nested;
}

}  // namespace support
