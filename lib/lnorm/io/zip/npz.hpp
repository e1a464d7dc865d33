#pragma once

#include <memory>
#include <optional>

#include "lnorm/io/byte_source.hpp"
#include "lnorm/io/tensor_set.hpp"

// The .npz format of NumPy: a zip archive of .npy members, stored or deflated. The member "weight" is
// stored as "weight.npy"; both name it. as: as for .npy (npy.hpp).
namespace lnorm {

std::unique_ptr<TensorSet> open_npz(std::unique_ptr<ByteSource> bytes, std::optional<DType> as);

}  // namespace lnorm
