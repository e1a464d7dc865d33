#pragma once

#include "lnorm/io/byte_sink.hpp"
#include "lnorm/io/members.hpp"

namespace lnorm::app {

// A line for each: name, dtype, shape.
void write_member_table(const Members& members, ByteSink& out);

}  // namespace lnorm::app
