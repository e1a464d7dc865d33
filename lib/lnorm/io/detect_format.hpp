#pragma once

#include "lnorm/core/error.hpp"
#include "lnorm/io/format.hpp"

namespace lnorm {

// Bytes of no format: the elements of a raw file, it seems, which must be told.
class ElementsAlone : public Error {
 public:
  using Error::Error;
};

// The format of a file by its first bytes, then by its extension. Throws Error, naming what the bytes look like, for
// everything else.
Format detect_format(ByteSource& source);

// Whether bytes begin as .npy, zip or GGUF, or with a valid header of .safetensors (from a pipe: with the start of one): by
// chance elements alone hardly do.
bool tells_format(ByteSource& source);

}  // namespace lnorm
