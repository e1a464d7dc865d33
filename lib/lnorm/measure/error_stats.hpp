#pragma once

#include <cstdint>
#include <optional>

#include "lnorm/core/chunk.hpp"
#include "lnorm/measure/raw_elements.hpp"
#include "lnorm/measure/unrounded_sum.hpp"

namespace lnorm {

// What the errors, actual - expected, of pairs are like of which both are finite; other pairs are left out. Every
// figure is within 1e-13 of the exact one, of the mean error and the cosine as long as their terms do not cancel to
// less than 2^-60 of their size, of the SQNR or within 1e-13 dB, of the two parts of the mean absolute error or
// within 2^-1000 of that. Elements are summed chunk by chunk: whoever adds the
// same chunks in the same order gets the same bits. The order in which stats are appended does not matter.
class ErrorStats {
 public:
  void add(const Chunk& actual, const Chunk& expected, std::int64_t count, DType actual_dtype,
           DType expected_dtype);

  // Adds at most kChunk pairs whose sides are these elements. The sums are those that add makes of them decoded.
  void add_same(const RawElements& elements);

  void append(const ErrorStats& next);

  std::int64_t pairs() const noexcept { return pairs_; }
  std::int64_t equal_numbers() const noexcept { return equal_numbers_; }
  std::int64_t equal_bits() const noexcept { return equal_bits_; }  // +0 and -0 are not

  // Nothing if there is no pair.
  std::optional<double> mean() const;
  std::optional<double> mean_absolute() const;

  // The two parts of the mean absolute error: the way from expected to actual leads toward zero or away from it.
  // Where it crosses zero it does both.
  std::optional<double> mean_toward_zero() const;
  std::optional<double> mean_away_from_zero() const;

  std::optional<double> root_mean_square() const;

  // sum(a e) / sqrt(sum(a^2) sum(e^2)): nothing if one of the sides is all zeros.
  std::optional<double> cosine() const;

  // 10 log10(sum(e^2) / sum((a - e)^2)): infinity if all numbers are equal.
  std::optional<double> sqnr() const;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(pairs_, equal_numbers_, equal_bits_, error_, toward_, away_, squared_, actual_,
            expected_, product_);
  }

 private:
  struct Sums;
  std::optional<double> mean_of(const ScaledSum& sum) const;
  void add_sums(const Sums& sums) noexcept;
  void add_counts(const Chunk& actual, const Chunk& expected, const Chunk& differences,
                  std::int64_t count);
  // Leaves out what is not finite, and does without overflow and underflow.
  void add_with_care(const Chunk& actual, const Chunk& expected, std::int64_t count, bool lows);

  std::int64_t pairs_ = 0;
  std::int64_t equal_numbers_ = 0;
  std::int64_t equal_bits_ = 0;
  ScaledSum error_;
  ScaledSum toward_;  // zero, of magnitudes
  ScaledSum away_;
  ScaledSum squared_;
  ScaledSum actual_;    // of squares
  ScaledSum expected_;  // of squares
  ScaledSum product_;
};

}  // namespace lnorm
