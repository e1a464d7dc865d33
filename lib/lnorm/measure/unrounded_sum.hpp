#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace lnorm {

// A sum of doubles times powers of two, without rounding: it does not depend on their order. Its memory is that of the bits
// from the greatest of them to the least.
class UnroundedSum {
 public:
  // Adds value * 2^exponent, which is finite.
  void add(double value, int exponent);
  void append(const UnroundedSum& next);

  // The sum rounded once to a factor in [1/2, 1), or 0, and a power of two.
  struct Parts {
    double factor;
    int exponent;
  };
  Parts rounded() const;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(first_, words_);
  }

 private:
  using Word = std::uint64_t;

  void add_words(std::int64_t first, std::span<const Word> words);
  void reach(std::int64_t begin, std::int64_t end);

  // In two's complement, the last word all sign: that of number 0 is a multiple of 2^(64 first).
  std::int64_t first_ = 0;
  std::vector<Word> words_;
};

}  // namespace lnorm
