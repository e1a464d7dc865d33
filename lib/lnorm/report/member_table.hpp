#pragma once

#include <span>

#include "lnorm/io/byte_sink.hpp"
#include "lnorm/io/tensor_set.hpp"

// What a set of tensors holds, or some of it. Tensors that cannot be read are listed as well.
namespace lnorm {

// For people: a line for each, name, dtype, shape and size, then the total; "no tensors" where there are none.
void write_member_text(std::span<const Member> members, ByteSink& bytes);

// For programs: one JSON object on one line. docs/reports.md has its keys.
void write_member_json(std::span<const Member> members, ByteSink& bytes);

// One line a tensor, after a line of names: name,dtype,shape,bytes. What is not known is empty.
void write_member_csv(std::span<const Member> members, ByteSink& bytes);

}  // namespace lnorm
