#pragma once

#include <functional>
#include <memory>
#include <string>

#include "lnorm/io/tensor_set.hpp"

namespace lnorm {

// The tensors of a folder: those of its files with an extension of .npy, .npz, .safetensors, .pt, .pth or .pb,
// and of the folders in it, in natural order of their names. Each file has one tensor, which is called by the
// file's path in the folder, without the extension: "h.0/in" for "h.0/in.npy". Names that begin with a dot are
// passed over. open: the set of a file, which is opened when its tensor is asked for. Throws Error if two files
// give the same name.
using OpenFile = std::function<std::shared_ptr<const TensorSet>(const std::string& path)>;
std::unique_ptr<TensorSet> open_folder(const std::string& path, OpenFile open);

}  // namespace lnorm
