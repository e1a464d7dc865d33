#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "lnorm/core/error.hpp"

namespace lnorm {

class ByteSource;

// Bytes of no format: the elements of a raw file, it seems, which must be told.
class ElementsAlone : public Error {
 public:
  using Error::Error;
};

// npz stands for .pt, too: both are zip archives. pb is an ONNX tensor. raw is elements alone, for input only; text is
// PyTorch's printed form, for output only.
enum class Format { npy, npz, safetensors, json, jsonl, pb, raw, text };

// With the dot, in lower case; empty if there is none.
std::string extension(std::string_view path);

// By the file name's extension, if it is one of a format's.
std::optional<Format> format_of_extension(std::string_view path);

// By the first bytes, then by the extension. Throws Error, naming what the bytes look like, for
// everything else.
Format detect_format(ByteSource& source);

}  // namespace lnorm
