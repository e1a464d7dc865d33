#pragma once

#include <memory>
#include <string>

#include "lnorm/io/byte_sink.hpp"
#include "lnorm/measure/tensor_stats.hpp"
#include "lnorm/report/style.hpp"

namespace lnorm {

// The statistics of many tensors, a line each.
class TensorStatsReport {
 public:
  TensorStatsReport() = default;
  TensorStatsReport(const TensorStatsReport&) = delete;
  TensorStatsReport& operator=(const TensorStatsReport&) = delete;
  virtual ~TensorStatsReport() = default;

  // name: of the tensor in its set.
  virtual void add(const std::string& name, const TensorStats& stats) = 0;

  // Follows the last tensor.
  virtual void finish() = 0;
};

// For people: what all tensors have in common, a table no wider than the style's width, and a total; columns that do not
// fit follow below, and long names are abbreviated. All is written by finish.
std::unique_ptr<TensorStatsReport> make_tensor_stats_text(int digits, const Style& style,
                                                          ByteSink& bytes);

// For programs: one JSON object on one line. docs/reports.md has its keys.
std::unique_ptr<TensorStatsReport> make_tensor_stats_json(ByteSink& bytes);

// One line a tensor, after a line of names, in full precision; what there is not is empty.
std::unique_ptr<TensorStatsReport> make_tensor_stats_csv(ByteSink& bytes);

}  // namespace lnorm
