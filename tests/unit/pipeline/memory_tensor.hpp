#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "lnorm/io/tensor_sink.hpp"
#include "lnorm/io/tensor_source.hpp"
#include "lnorm/pipeline/run.hpp"
#include "support/catch.hpp"

// Tensors in memory, which tell how they were used.
class MemorySource final : public lnorm::TensorSource {
 public:
  MemorySource(lnorm::TensorInfo info, std::vector<std::byte> bytes, bool has_random_access = false)
      : TensorSource(std::move(info)),
        bytes_(std::move(bytes)),
        has_random_access_(has_random_access) {}
  void read(std::vector<std::byte>& to, std::size_t bytes) override {
    REQUIRE(position_ + bytes <= bytes_.size());
    const auto from = bytes_.begin() + static_cast<std::ptrdiff_t>(position_);
    to.assign(from, from + static_cast<std::ptrdiff_t>(bytes));
    position_ += bytes;
    largest_read = std::max(largest_read, bytes);
  }
  bool has_random_access() const noexcept override { return has_random_access_; }
  void read_at(std::int64_t position, std::span<std::byte> to) const override {
    std::copy_n(bytes_.begin() + position, to.size(), to.begin());
  }
  void skip(std::int64_t bytes) override { position_ += static_cast<std::size_t>(bytes); }
  void finish() override { finished = true; }

  std::size_t largest_read = 0;
  bool finished = false;

 private:
  std::vector<std::byte> bytes_;
  bool has_random_access_;
  std::size_t position_ = 0;
};

class MemorySink final : public lnorm::TensorSink {
 public:
  MemorySink() = default;
  // With positions.
  explicit MemorySink(std::size_t size) : bytes(size), has_random_access_(true) {}

  bool has_random_access() const noexcept override { return has_random_access_; }
  void write_at(std::int64_t position, std::span<const std::byte> elements) const override {
    std::copy(elements.begin(), elements.end(), bytes.begin() + position);
  }
  void write(std::span<const std::byte> elements) override {
    bytes.insert(bytes.end(), elements.begin(), elements.end());
  }
  void finish() override { finished = true; }

  mutable std::vector<std::byte> bytes;
  bool finished = false;

 private:
  bool has_random_access_ = false;
};

// Collects mean and rstd of the rows, which come in order.
class Collector final : public lnorm::RowObserver {
 public:
  void see(const lnorm::RowBlock& block, const lnorm::BlockFindings&) override {
    if (!block.mean.empty()) CHECK(block.first_row == std::ssize(mean));
    mean.insert(mean.end(), block.mean.begin(), block.mean.end());
    rstd.insert(rstd.end(), block.rstd.begin(), block.rstd.end());
  }
  void finish() override { finished = true; }

  std::vector<double> mean;
  std::vector<double> rstd;
  bool finished = false;
};
