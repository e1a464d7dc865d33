#pragma once

namespace lnorm {

// How a tensor gets from a file to its rows, or from the rows to a file. What needs positions and has none
// is spooled.
struct Passage {
  bool needs_positions = false;  // tiles do not follow each other in the file
  bool transposes = false;       // first into C order, in a temporary file; of a source
  bool lines_up_rows = false;    // by way of a temporary file in which rows lie one after another

  // Whether there is a temporary file on the way.
  bool makes_detour(bool has_positions) const noexcept {
    return transposes || lines_up_rows || (needs_positions && !has_positions);
  }
};

}  // namespace lnorm
