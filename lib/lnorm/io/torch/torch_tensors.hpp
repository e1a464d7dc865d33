#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lnorm/core/dtype.hpp"
#include "lnorm/core/shape.hpp"
#include "lnorm/io/torch/pickle_value.hpp"

// What a pickle of PyTorch says of tensors. [PyTorch, torch/_utils.py, torch/serialization.py]
namespace lnorm {

// Whether PyTorch names a global for tensors: "torch.FloatStorage", "torch._utils._rebuild_tensor_v2".
bool is_torch_global(std::string_view name);

struct NamedTensor {
  std::string name;
  PickleId value;
};

// The tensors in a pickle's dicts, lists and tuples, in their order. A name is keys and numbers, joined by
// dots; that of a tensor alone is empty. Objects of other classes are named as well; other values are passed over. Throws Error, which begins with file, if
// two names are the same, for a key that cannot be part of one, and for values that nest deeper or are more
// than any model needs, such as a list that holds itself.
std::vector<NamedTensor> find_torch_tensors(const Pickle& pickle, const std::string& file);

// Elements of a storage: element (i, j, ...) is number offset + i * strides[0] + j * strides[1] + ... of it.
struct StorageView {
  std::string storage;             // its key
  std::int64_t storage_bytes = 0;  // as the pickle claims
  DType dtype = DType::float32;
  std::int64_t offset = 0;
  Shape shape;
  std::vector<std::int64_t> strides;  // not negative
};

// A tensor, which lies within its storage. Throws UnsupportedDType for one that lnorm does not read, and Error for
// one that is not well formed; both begin with name, which is in file.
StorageView read_torch_tensor(const Pickle& pickle, PickleId value, const std::string& name,
                              const std::string& file);

}  // namespace lnorm
