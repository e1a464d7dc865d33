#pragma once

#include <vector>

#include "lnorm/io/byte_sink.hpp"
#include "lnorm/io/tensor_set.hpp"

namespace lnorm::app {

// A line for each: name, dtype, shape.
void write_member_table(const std::vector<Member>& members, ByteSink& out);

}  // namespace lnorm::app
