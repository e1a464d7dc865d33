#pragma once

#include <cstddef>
#include <optional>
#include <span>
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

// Pieces of so many bytes, which need not be whole elements, the last one first.
inline std::vector<std::byte> read_in_pieces(const lnorm::TensorSource& source, std::size_t size,
                                             std::size_t piece) {
  std::vector<std::byte> bytes(size);
  for (std::size_t at = size; at > 0;) {
    const std::size_t begin = (at - 1) / piece * piece;
    source.read_at(static_cast<std::int64_t>(begin), std::span(bytes).subspan(begin, at - begin));
    at = begin;
  }
  return bytes;
}

inline std::vector<lnorm::Member> list(const lnorm::TensorSet& set) {
  std::vector<lnorm::Member> members;
  for (std::size_t i = 0; i < set.size(); ++i) members.push_back(set.describe(i));
  return members;
}

}  // namespace support
