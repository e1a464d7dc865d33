#pragma once

#include <memory>
#include <optional>

#include "lnorm/io/byte_sink.hpp"
#include "lnorm/io/tensor_set.hpp"
#include "lnorm/io/tensor_sink.hpp"
#include "lnorm/io/zip/zip_archive.hpp"

namespace lnorm {

// The .npz format of NumPy: a zip archive of .npy members, stored or deflated. The tensor "weight" is stored as
// "weight.npy". as: as for .npy (npy.hpp). The header of a member is read when it is asked for; the end of a member throws
// Error if its CRC is not right. Throws Error if two members give the same name.
std::unique_ptr<TensorSet> open_npz(std::shared_ptr<const ZipArchive> archive,
                                    std::optional<DType> as);

// An .npz as numpy.savez writes it, not compressed: the tensor "weight" is the member "weight.npy". In a pipe
// what is known of a member only afterwards follows it.
std::unique_ptr<TensorSetSink> make_npz_set_sink(ByteSink& bytes);

}  // namespace lnorm
