#pragma once

namespace lnorm {

// How a tensor gets from a file to its rows, or from the rows to a file. What needs positions and has none
// is spooled.
struct Passage {
  bool needs_positions = false;  // tiles do not follow each other in the file
  bool transposes = false;       // first into C order, in a temporary file; of a source
  bool lines_up_rows = false;    // by way of a temporary file in which rows lie one after another
};

}  // namespace lnorm
