#pragma once

#include <memory>

#include "lnorm/io/tensor_set.hpp"
#include "lnorm/io/zip/zip_archive.hpp"

// .pt and .pth, as torch.save has written them since PyTorch 1.6: a zip archive with a pickle, NAME/data.pkl,
// that says which tensors there are, and their storages, NAME/data/KEY. [PyTorch, torch/serialization.py]
namespace lnorm {

// Whether it has a member NAME/data.pkl.
bool is_torch(const ZipArchive& archive);

// All tensors, in the order of the pickle. What that says is read and checked here, and nothing in it is run;
// the elements are read in place. Throws Error if the pickle is not one of tensors, if one of them does not lie
// within its storage, or if a storage has another size than is said. A tensor of a kind that lnorm does not
// read is no error until it is asked for.
//
// The CRC-32 of the pickle is checked. That of a storage is checked at the end of a tensor which is all of it,
// in C order or in Fortran order. Files may be without.
std::unique_ptr<TensorSet> open_torch(std::shared_ptr<const ZipArchive> archive);

}  // namespace lnorm
