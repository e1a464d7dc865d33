#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "lnorm/io/byte_sink.hpp"
#include "lnorm/io/byte_source.hpp"
#include "lnorm/io/tensor_sink.hpp"
#include "lnorm/io/tensor_source.hpp"

// The .npy format, versions 1.0, 2.0 and 3.0.
// [NumPy, "NPY format", numpy.lib.format]
//
// It has no bfloat16 and no float8: what ml_dtypes adds to NumPy is saved as '<V2' or '|V1', bytes without a meaning. as
// gives them one, if it is a dtype of that size, and changes nothing for other dtypes.
namespace lnorm {

// Reads the header; throws Error if it is not well formed or of a dtype that is not supported.
TensorInfo read_npy_header(ByteSource& bytes, std::optional<DType> as = {});

// Opens the tensor. Throws Error as well where bytes are known not to hold exactly the data that
// the header claims.
std::unique_ptr<TensorSource> open_npy(std::unique_ptr<ByteSource> bytes,
                                       std::optional<DType> as = {});

// Writes version 1.0, as numpy.save writes it on a little-endian machine, and what
// is no dtype of .npy as '<V2' or '|V1'.
std::unique_ptr<TensorSink> make_npy_sink(ByteSink& bytes, const TensorInfo& info);

// The dict literal of a header, parsed. at: the dict's offset in the file, for messages, which
// begin with name. python2_longs: sizes may end in L.
TensorInfo parse_npy_dict(const std::string& name, std::string_view dict, std::size_t at,
                          bool python2_longs, std::optional<DType> as = {});

// Magic, version, length, dict and padding.
std::string format_npy_header(const TensorInfo& info);

}  // namespace lnorm
