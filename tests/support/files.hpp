#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <type_traits>
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

  std::string read(std::string_view name) const;
  // Folders on the way are made.
  void write(std::string_view name, std::string_view bytes) const;
  bool has(std::string_view name) const { return std::filesystem::exists(path_ / name); }
  // The names of all entries, hidden ones too, sorted.
  std::vector<std::string> files() const;

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

// The file says that its elements lie in Fortran order.
std::string in_fortran_order(std::string npy_file);

// Writes an .npy file of float32 zeros, of which the first and the last are given. It takes no room on the disk.
void write_sparse_npy(const std::filesystem::path& path, const std::vector<std::int64_t>& shape,
                      float first = 0, float last = 0);

// Returns how many elements a tensor of that shape has.
std::int64_t product(const std::vector<std::int64_t>& shape);

// Turns the elements, of so many bytes each, into the other byte order.
std::string swapped(std::string bytes, std::size_t item);

// Returns the integer of the first so many bytes, the low one first.
std::uint64_t little_endian(std::string_view bytes, std::size_t size);

// A .safetensors file: the header's length, the header as it is, the data.
std::string safetensors(std::string_view header, std::string_view data);

// Returns a member of such a header.
std::string safetensors_entry(std::string_view name, std::string_view dtype, std::string_view shape,
                              std::uint64_t begin, std::uint64_t end);

// The elements as they lie in memory.
template <class T>
std::string bytes_of(const std::vector<T>& elements) {
  return {reinterpret_cast<const char*>(elements.data()), elements.size() * sizeof(T)};
}

// Returns NumPy's code of a type.
template <class T>
std::string descr_of() {
  const char kind = std::is_same_v<T, bool>       ? 'b'
                    : std::is_floating_point_v<T> ? 'f'
                    : std::is_signed_v<T>         ? 'i'
                                                  : 'u';
  return (sizeof(T) == 1 ? "|" : "<") + (kind + std::to_string(sizeof(T)));
}

// Returns an .npy file of that type, whatever the elements are given as.
template <class T, class From = T>
std::string npy_of(const std::vector<std::int64_t>& shape, const std::vector<From>& elements) {
  return npy(descr_of<T>(), shape, bytes_of(std::vector<T>(elements.begin(), elements.end())));
}

// Moves elements from C order to Fortran order.
template <class T>
std::vector<T> moved_to_fortran_order(const std::vector<std::int64_t>& shape,
                                      const std::vector<T>& elements) {
  std::vector<T> moved(elements.size());
  std::vector<std::int64_t> index(shape.size());
  for (const T& element : elements) {
    std::int64_t position = 0;
    for (std::size_t axis = shape.size(); axis-- > 0;)
      position = position * shape[axis] + index[axis];
    moved[static_cast<std::size_t>(position)] = element;
    for (std::size_t axis = shape.size(); axis-- > 0 && ++index[axis] == shape[axis];) {
      index[axis] = 0;
    }
  }
  return moved;
}
// Returns the tensor that npy_of returns, in Fortran order.
template <class T, class From = T>
std::string fortran_npy_of(const std::vector<std::int64_t>& shape,
                           const std::vector<From>& elements) {
  return in_fortran_order(npy_of<T>(shape, moved_to_fortran_order(shape, elements)));
}
inline std::string npy_of_floats(const std::vector<float>& elements) {
  return npy_of<float>({static_cast<std::int64_t>(elements.size())}, elements);
}

// Returns an .npy of float32 without a pattern that a block's length could hide; another step gives other numbers.
std::string waves(const std::vector<std::int64_t>& shape, double step = 1);

// Nested arrays (or a number) as JSON text: the shape, and the elements in C order. Throws
// std::runtime_error if they are ragged.
struct Nested {
  std::vector<std::int64_t> shape;
  std::vector<double> elements;
};
Nested parse_nested(std::string_view json);

}  // namespace support
