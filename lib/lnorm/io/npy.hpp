#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "lnorm/io/byte_sink.hpp"
#include "lnorm/io/byte_source.hpp"
#include "lnorm/io/tensor_sink.hpp"
#include "lnorm/io/tensor_source.hpp"

// The .npy format, versions 1.0, 2.0 and 3.0.
// [NumPy, "NPY format", numpy.lib.format]
namespace lnorm {

// Reads the header; throws Error if it is not well formed, of a dtype that is not supported, or if
// a regular file does not hold exactly the data that the header claims.
std::unique_ptr<TensorSource> open_npy(ByteSource bytes);

// Writes version 1.0, as numpy.save writes it. info: native byte order. Throws Error for bfloat16, which
// NumPy does not have.
std::unique_ptr<TensorSink> make_npy_sink(ByteSink& bytes, const TensorInfo& info);

// The dict literal of a header, parsed. at: the dict's offset in the file, for messages, which
// begin with name. python2_longs: sizes may end in L.
TensorInfo parse_npy_dict(const std::string& name, std::string_view dict, std::size_t at,
                          bool python2_longs);

// Magic, version, length, dict and padding.
std::string format_npy_header(const TensorInfo& info);

}  // namespace lnorm
