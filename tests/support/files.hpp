#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace support {

// A new directory, removed with all that is in it.
class TempDir {
 public:
  TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  ~TempDir();

  const std::filesystem::path& path() const { return path_; }
  std::string operator/(std::string_view name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

std::string read_file(const std::filesystem::path& path);
void write_file(const std::filesystem::path& path, std::string_view bytes);

// Where two contents first differ, for messages; empty if they are the same.
std::string difference(std::string_view actual, std::string_view expected);

// The names of all entries, hidden ones too, sorted.
std::vector<std::string> list_directory(const std::filesystem::path& path);

// A file of data/.
inline std::string data_file(std::string_view name) {
  return std::string(LNORM_DATA_DIR "/").append(name);
}

// An .npy file, version 1.0, with a header of 128 bytes as NumPy writes it.
std::string npy(std::string_view descr, const std::vector<std::int64_t>& shape,
                std::string_view bytes);

// A .safetensors file: the header's length, the header as it is, the data.
std::string safetensors(std::string_view header, std::string_view data);

// The elements as they lie in memory.
template <class T>
std::string bytes_of(const std::vector<T>& elements) {
  return {reinterpret_cast<const char*>(elements.data()), elements.size() * sizeof(T)};
}

// Nested arrays (or a number) as JSON text: the shape, and the elements in C order. Throws
// std::runtime_error if they are ragged.
struct Nested {
  std::vector<std::int64_t> shape;
  std::vector<double> elements;
};
Nested parse_nested(std::string_view json);

}  // namespace support
