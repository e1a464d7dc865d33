#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "lnorm/core/tensor_info.hpp"
#include "lnorm/io/byte_source.hpp"
#include "lnorm/io/tensor_source.hpp"

namespace lnorm {

// A view of stored elements, in C order: element (i, j, ...) is number offset + i * strides[0] + j * strides[1]
// + ... of storage, none of which is behind its end. strides are not negative. storage: has_random_access(). What
// lies close together is read at once, in pieces of at most 128 KiB.
std::unique_ptr<TensorSource> make_strided_source(std::shared_ptr<const ByteSource> storage,
                                                  TensorInfo info, std::int64_t offset,
                                                  const std::vector<std::int64_t>& strides);

}  // namespace lnorm
