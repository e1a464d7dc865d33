#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "arguments.hpp"
#include "lnorm/core/tensor_info.hpp"
#include "lnorm/pipeline/run.hpp"

namespace lnorm::app {

// One line on standard error that tells how far the work is, once it has taken a second. The line goes with
// the last element, or with the object.
class ProgressLine {
 public:
  // when: automatic is on a terminal.
  ProgressLine(When when, const TensorInfo& tensor);
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  ~ProgressLine();

  // For the loop, as long as this object lives. Empty if nothing is to be shown.
  Progress callback();

 private:
  using Clock = std::chrono::steady_clock;

  void show(std::int64_t elements);
  void clear();

  bool wanted_;
  std::string name_;
  std::int64_t total_;
  Clock::time_point begin_ = Clock::now();
  Clock::time_point next_;
  bool drawn_ = false;
};

}  // namespace lnorm::app
