#include "support/pickle.hpp"

#include "support/zip.hpp"

namespace support {

namespace {

std::string little_endian(std::uint64_t value, int size) {
  std::string bytes;
  for (int i = 0; i < size; ++i) bytes += static_cast<char>(value >> (8 * i) & 0xff);
  return bytes;
}

}  // namespace

std::string pickled(std::string_view text) {
  return "X" + little_endian(text.size(), 4) + std::string(text);
}

std::string pickled(std::int64_t integer) {
  return "\x8a\x08" + little_endian(static_cast<std::uint64_t>(integer), 8);
}

std::string pickled_tuple(const std::vector<std::string>& items) {
  std::string tuple = "(";
  for (const std::string& item : items) tuple += item;
  return tuple + "t";
}

std::string pickled_integers(const std::vector<std::int64_t>& integers) {
  std::vector<std::string> items;
  for (const std::int64_t integer : integers) items.push_back(pickled(integer));
  return pickled_tuple(items);
}

std::string pickled_global(std::string_view module, std::string_view name) {
  return "c" + std::string(module) + "\n" + std::string(name) + "\n";
}

std::string pickled_storage(std::string_view key, std::int64_t length, std::string_view type) {
  return pickled_tuple({pickled("storage"), pickled_global("torch", type), pickled(key),
                        pickled("cpu"), pickled(length)}) +
         "Q";
}

std::string pickled_tensor(const std::string& storage, std::int64_t offset,
                           const std::vector<std::int64_t>& shape,
                           const std::vector<std::int64_t>& strides) {
  const std::string hooks = pickled_global("collections", "OrderedDict") + ")R";
  return pickled_global("torch._utils", "_rebuild_tensor_v2") +
         pickled_tuple({storage, pickled(offset), pickled_integers(shape),
                        pickled_integers(strides), "\x89", hooks}) +
         "R";
}

std::string pickled_dict(const std::string& key, const std::string& value) {
  return "}" + key + value + "s";
}

std::string pickle_of(const std::string& value) { return "\x80\x02" + value + "."; }

std::string torch_file(const std::string& pickle, const std::vector<std::string>& storages) {
  std::vector<ZipEntry> entries{{"x/data.pkl", pickle}};
  for (const std::string& storage : storages) {
    entries.push_back({"x/data/" + std::to_string(entries.size() - 1), storage});
  }
  return zip(entries);
}

}  // namespace support
