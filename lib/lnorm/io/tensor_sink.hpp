#pragma once

#include <cstddef>
#include <span>

namespace lnorm {

// A tensor that is being written. Its header is given to the maker; elements come in C order, in
// native byte order.
class TensorSink {
 public:
  TensorSink() = default;
  TensorSink(const TensorSink&) = delete;
  TensorSink& operator=(const TensorSink&) = delete;
  virtual ~TensorSink() = default;

  // Whole elements.
  virtual void write(std::span<const std::byte> elements) = 0;

  // After the last element: writes what is still due.
  virtual void finish() = 0;
};

}  // namespace lnorm
