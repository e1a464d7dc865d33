#pragma once

#include "lnorm/core/chunk.hpp"
#include "lnorm/io/raw_tensor.hpp"
#include "lnorm/pipeline/plan.hpp"
#include "unit/pipeline/memory_tensor.hpp"

// Tensors that ranks of this process read and write together.
struct RankTensor {
  lnorm::TensorInfo info;
  std::vector<std::byte> bytes;

  MemorySource source(bool has_random_access) const { return {info, bytes, has_random_access}; }
};

// Not written yet.
inline RankTensor unwritten(const lnorm::TensorInfo& info) {
  return {info, std::vector<std::byte>(static_cast<std::size_t>(lnorm::data_bytes(info)),
                                       std::byte{0xa5})};
}

inline RankTensor filled(const lnorm::TensorInfo& info, std::vector<double> values) {
  RankTensor tensor = unwritten(info);
  values.resize(static_cast<std::size_t>(lnorm::element_count(info.shape)));
  if (lnorm::is_floating(info.dtype)) {
    lnorm::store(values.data(), std::ssize(values), info.dtype, tensor.bytes.data());
  } else {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto integer = static_cast<std::int32_t>(values[i]);
      std::memcpy(tensor.bytes.data() + i * sizeof integer, &integer, sizeof integer);
    }
  }
  return tensor;
}

// Rows in small pieces, so that there are some for every rank: in parts, or in blocks of whole ones.
inline void cut_small(lnorm::Plan& plan, bool in_parts) {
  lnorm::Route& route = plan.route;
  route.in_parts = in_parts;
  route.rows = in_parts && plan.in_view.is_contiguous() ? 1 : 2;
  route.block_rows = route.rows;
  route.count = in_parts ? std::min<std::int64_t>(plan.row_length, 3) : plan.row_length;
  route.in.needs_random_access = true;
  route.out.needs_random_access = true;
}
