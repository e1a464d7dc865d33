#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lnorm/core/tensor_info.hpp"
#include "lnorm/diagnosis/diagnosis.hpp"
#include "lnorm/measure/comparison.hpp"

// What is found out of a kernel's output.
namespace lnorm {

enum class Verdict { correctly_rounded, within_rounding, not_judged, differs };
inline std::string_view name(Verdict verdict) {
  constexpr std::string_view kNames[] = {"correctly rounded", "within rounding", "not judged",
                                         "differs"};
  return kNames[static_cast<std::size_t>(verdict)];
}

inline Verdict verdict_of(const JudgedRows& judged) {
  if (judged.beyond > 0 || judged.scaled_rows > 0) return Verdict::differs;
  if (judged.elements == 0 || judged.unjudged_rows == judged.rows) return Verdict::not_judged;
  return judged.correctly_rounded == judged.elements ? Verdict::correctly_rounded
                                                     : Verdict::within_rounding;
}

struct CheckOptions {
  DType arithmetic = DType::float32;
  std::optional<std::int64_t> depth = {};
  bool zero_centered_weight = false;
  Rounding rounding = {};
  double output_scale = 1;    // of the results, before they are rounded to float8
  ChooseKernel kernels = {};  // empty: no explanation is looked for
  std::optional<Criteria> criteria = {};
};

struct Check {
  TensorInfo x;  // the whole tensors, where only some rows were looked at
  TensorInfo actual;
  std::string part;  // "mean", "rstd", "scale", "sum", "dx", "dweight" or "dbias"; empty: y
  std::optional<RowSlice> slice;
  Axes axes;
  Formula formula;
  DType arithmetic = DType::float32;
  std::int64_t row_length = 0;
  JudgedRows judged;
  Verdict verdict = Verdict::not_judged;
  Diagnosis diagnosis;
  bool is_sampled = false;    // the best explanation was compared with some rows alone
  bool is_too_long = false;   // a row, for wrong kernels to be tried
  bool is_statistic = false;  // one number a row, for which there are none
  bool is_quantized = false;  // q or its scale, for which mistakes of quantization are tried
  AffectedNumbers rows;
  AffectedNumbers columns;
  std::vector<std::string> where;
  // Many tensors have a verdict each, and few have these, which are large.
  std::shared_ptr<Comparison> comparison;  // if there are criteria
  std::vector<Check> statistics;           // which the kernel has saved beside y
  std::shared_ptr<Comparison> details;     // of y with the exact result, if that is asked for

  bool has_mask = false;
  // How many elements a mask leaves out.
  std::int64_t left_out() const {
    if (!has_mask) return 0;
    return (slice ? slice->count * row_length : element_count(actual.shape)) - judged.elements;
  }

  bool agrees() const {
    if (verdict == Verdict::not_judged) return false;
    return comparison ? comparison->equal() : verdict != Verdict::differs;
  }
  int exit_status() const { return verdict == Verdict::not_judged ? 2 : agrees() ? 0 : 1; }
  // Whether the verdict takes the bound of sums one after another.
  bool as_loop() const { return verdict == Verdict::within_rounding && judged.loop_rows > 0; }
};

// Of several tensors.
struct NamedCheck {
  std::string name;
  Check check;
  std::string error =
      {};  // what kept it from being judged, so that there is no check; empty: nothing

  int exit_status() const { return error.empty() ? check.exit_status() : 2; }
};

}  // namespace lnorm
