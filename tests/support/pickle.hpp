#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

// Pickles and files of PyTorch, written by hand: each of these functions gives opcodes that leave one value.
namespace support {

std::string pickled(std::string_view text);
std::string pickled(std::int64_t integer);
std::string pickled_tuple(const std::vector<std::string>& items);
std::string pickled_integers(const std::vector<std::int64_t>& integers);
std::string pickled_global(std::string_view module, std::string_view name);

// ('storage', torch.FloatStorage, key, 'cpu', length), by the name of its type.
std::string pickled_storage(std::string_view key, std::int64_t length,
                            std::string_view type = "FloatStorage");

// A call of torch._utils._rebuild_tensor_v2.
std::string pickled_tensor(const std::string& storage, std::int64_t offset,
                           const std::vector<std::int64_t>& shape,
                           const std::vector<std::int64_t>& strides);

// A dict of one item.
std::string pickled_dict(const std::string& key, const std::string& value);

// A whole pickle of protocol 2 that holds value.
std::string pickle_of(const std::string& value);

// A .pt of that pickle, with storages '0', '1', ...
std::string torch_file(const std::string& pickle, const std::vector<std::string>& storages);

}  // namespace support
