#pragma once

#include <algorithm>
#include <utility>

#include "lnorm/io/tensor_sink.hpp"
#include "lnorm/io/tensor_source.hpp"
#include "lnorm/pipeline/run.hpp"
#include "support/catch.hpp"
#include "support/elements.hpp"

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
  void read_at(std::int64_t offset, std::span<std::byte> to) const override {
    std::copy_n(bytes_.begin() + offset, to.size(), to.begin());
  }
  const std::byte* in_memory(std::int64_t offset) const noexcept override {
    return is_in_memory ? bytes_.data() + offset : nullptr;
  }
  void skip(std::int64_t bytes) override { position_ += static_cast<std::size_t>(bytes); }
  void finish() override { finished = true; }

  const std::vector<std::byte>& bytes() const noexcept { return bytes_; }

  std::size_t largest_read = 0;
  bool finished = false;
  bool is_in_memory = false;

 private:
  std::vector<std::byte> bytes_;
  bool has_random_access_;
  std::size_t position_ = 0;
};

class MemorySink final : public lnorm::TensorSink {
 public:
  MemorySink() = default;
  // With random access.
  explicit MemorySink(std::size_t size) : own_(size), has_random_access_(true) {}
  // Ranks write the same bytes, which are there already.
  MemorySink(std::vector<std::byte>& shared, bool has_random_access)
      : has_random_access_(has_random_access), bytes(shared) {}

  bool has_random_access() const noexcept override { return has_random_access_; }
  void write_at(std::int64_t position, std::span<const std::byte> elements) const override {
    std::copy(elements.begin(), elements.end(), bytes.begin() + position);
  }
  std::byte* in_memory(std::int64_t offset) const noexcept override {
    return is_in_memory ? bytes.data() + offset : nullptr;
  }
  void write(std::span<const std::byte> elements) override {
    bytes.resize(std::max(bytes.size(), next_ + elements.size()));
    write_at(static_cast<std::int64_t>(next_), elements);
    next_ += elements.size();
  }
  void finish() override {
    finished = true;
    ++ends;
  }
  void skip() override { ++ends; }

 private:
  std::vector<std::byte> own_;
  bool has_random_access_ = false;
  std::size_t next_ = 0;

 public:
  std::vector<std::byte>& bytes = own_;
  bool finished = false;
  bool is_in_memory = false;
  int ends = 0;
};

// The source gives these elements in the byte order of info.
template <class T>
MemorySource source_of(const lnorm::TensorInfo& info, const std::vector<T>& values,
                       bool has_random_access = false) {
  const std::vector<std::byte> bytes = support::as_bytes(values);
  return {info, info.byte_order == std::endian::native ? bytes : support::swapped(bytes, sizeof(T)),
          has_random_access};
}

// Does what lnorm apply does without options.
inline void normalize(const lnorm::RowsIn& x, const lnorm::RowsOut& y,
                      const lnorm::RowNumbersOut& stats) {
  lnorm::backends().front().layer_norm(x, y, {}, {}, stats);
}

// Normalizes rows for an observer to see.
inline void observe(MemorySource& source, const lnorm::Plan& plan, lnorm::RowObserver& observer,
                    lnorm::TensorSink* sink = nullptr, const lnorm::RunOptions& options = {}) {
  lnorm::RowObserver* const observers[] = {&observer};
  lnorm::run(source, plan, normalize, observers, sink, options);
}

// Progress never falls, and comes to its end.
class Progress {
 public:
  auto report() {
    return [this](std::int64_t elements) {
      CHECK(elements >= last_);
      last_ = elements;
    };
  }
  void check_end(std::int64_t elements) const { CHECK(last_ == elements); }

 private:
  std::int64_t last_ = 0;
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
