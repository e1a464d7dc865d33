#pragma once

#include <memory>
#include <optional>
#include <string>

#include "lnorm/io/byte_source.hpp"
#include "lnorm/io/members.hpp"
#include "lnorm/io/tensor_source.hpp"

// The .npz format of NumPy: a zip archive of .npy members, stored or deflated. The member "weight" is
// stored as "weight.npy"; both name it. as: as for .npy (npy.hpp).
namespace lnorm {

// The member named, or the only one. Throws Error if there is no such one, if several are there and none
// is named, and for all that keeps the archive or the member from being read.
std::unique_ptr<TensorSource> open_npz(std::unique_ptr<ByteSource> bytes,
                                       const std::optional<std::string>& member,
                                       std::optional<DType> as);

Members open_npz_members(std::unique_ptr<ByteSource> bytes, std::optional<DType> as);

}  // namespace lnorm
