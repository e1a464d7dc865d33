#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lnorm/core/tensor_info.hpp"
#include "lnorm/io/tensor_sink.hpp"

namespace lnorm {

// Several tensors that are written one after another, into a file of all of them or into a folder.
class TensorSetSink {
 public:
  TensorSetSink() = default;
  TensorSetSink(const TensorSetSink&) = delete;
  TensorSetSink& operator=(const TensorSetSink&) = delete;
  virtual ~TensorSetSink() = default;

  // The next tensor, which is complete when finish() of its sink returns. One that is not complete when the next
  // begins, or when finish() of the set is called, is left out. info: native byte order; its name is the
  // tensor's name in the set. Throws Error if that cannot be a name there, or is there twice.
  virtual std::unique_ptr<TensorSink> begin(const TensorInfo& info) = 0;

  // After the last tensor: writes what is still due.
  virtual void finish() = 0;
};

}  // namespace lnorm
