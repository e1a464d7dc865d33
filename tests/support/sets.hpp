#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "lnorm/core/error.hpp"
#include "lnorm/io/tensor_set.hpp"

namespace support {

struct WholeTensor {
  lnorm::TensorInfo info;
  std::vector<std::byte> elements;
};

// The tensor of that name, or the only one, and the set to its end. Throws lnorm::Error if there is no such one.
inline WholeTensor read_tensor(const lnorm::TensorSet& set,
                               const std::optional<std::string>& name) {
  const auto index = name              ? set.find(*name)
                     : set.size() == 1 ? std::optional<std::size_t>(0)
                                       : std::nullopt;
  if (!index) throw lnorm::Error("there is no such tensor");
  const auto source = set.open(*index);
  WholeTensor tensor{source->info(), lnorm::read_all(*source)};
  set.finish();
  return tensor;
}

inline std::vector<lnorm::Member> list(const lnorm::TensorSet& set) {
  std::vector<lnorm::Member> members;
  for (std::size_t i = 0; i < set.size(); ++i) members.push_back(set.describe(i));
  return members;
}

}  // namespace support
