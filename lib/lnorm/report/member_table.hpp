#pragma once

#include "lnorm/io/byte_sink.hpp"
#include "lnorm/io/tensor_set.hpp"

// What a set of tensors holds. Tensors that cannot be read are listed as well. One header is read for each line.
namespace lnorm {

// For people: a line for each, name, dtype, shape and size, then the total; "no tensors" where there are none.
void write_member_text(const TensorSet& set, ByteSink& bytes);

// For programs: one JSON object on one line. docs/reports.md has its keys.
void write_member_json(const TensorSet& set, ByteSink& bytes);

// One line a tensor, after a line of names: name,dtype,shape,bytes. What is not known is empty.
void write_member_csv(const TensorSet& set, ByteSink& bytes);

}  // namespace lnorm
