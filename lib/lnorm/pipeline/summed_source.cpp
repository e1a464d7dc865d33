#include "lnorm/pipeline/summed_source.hpp"

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/kernel/add.hpp"
#include "lnorm/layout/reorder.hpp"
#include "lnorm/pipeline/executor.hpp"
#include "lnorm/pipeline/plan.hpp"

namespace lnorm {

namespace {

class SummedSource final : public TensorSource {
 public:
  SummedSource(TensorInfo info, std::unique_ptr<TensorSource> x,
               std::unique_ptr<TensorSource> residual, SumRounding rounding)
      : TensorSource(std::move(info)),
        x_(std::move(x)),
        residual_(std::move(residual)),
        rounding_(rounding) {}

  void read(std::vector<std::byte>& to, std::size_t bytes) override {
    const std::size_t elements = bytes / item();
    x_->read(x_elements_, elements * item_size(x_->info().dtype));
    residual_->read(residual_elements_, elements * item_size(residual_->info().dtype));
    to.resize(bytes);
    add_elements(x_elements_, residual_elements_, to);
  }

  void skip(std::int64_t bytes) override {
    const std::int64_t elements = bytes / static_cast<std::int64_t>(item());
    for (TensorSource* source : {x_.get(), residual_.get()}) {
      source->skip(elements * static_cast<std::int64_t>(item_size(source->info().dtype)));
    }
  }

  bool has_random_access() const noexcept override {
    return x_->has_random_access() && residual_->has_random_access();
  }

  void read_at(std::int64_t offset, std::span<std::byte> to) const override {
    // The L1 cache holds a piece of each.
    constexpr std::size_t kPiece = 2048;
    std::vector<std::byte> x_elements;
    std::vector<std::byte> residual_elements;
    auto first = static_cast<std::size_t>(offset) / item();
    while (!to.empty()) {
      const std::size_t elements = std::min(kPiece, to.size() / item());
      read_elements(*x_, first, elements, x_elements);
      read_elements(*residual_, first, elements, residual_elements);
      add_elements(x_elements, residual_elements, to.first(elements * item()));
      to = to.subspan(elements * item());
      first += elements;
    }
  }

  void finish() override {
    x_->finish();
    residual_->finish();
  }

 private:
  std::size_t item() const { return item_size(info().dtype); }

  static void read_elements(const TensorSource& source, std::size_t first, std::size_t elements,
                            std::vector<std::byte>& to) {
    const std::size_t size = item_size(source.info().dtype);
    to.resize(elements * size);
    source.read_at(static_cast<std::int64_t>(first * size), to);
  }

  void add_elements(std::span<const std::byte> x, std::span<const std::byte> residual,
                    std::span<std::byte> to) const {
    const auto elements = static_cast<std::int64_t>(to.size() / item());
    const auto row = [&](const TensorSource& source, std::span<const std::byte> data) {
      return RowsIn{data.data(), source.info().dtype, source.info().byte_order, 1, elements};
    };
    const RowsIn a = row(*x_, x);
    const RowsIn b = row(*residual_, residual);
    if (rounding_ == SumRounding::once) return add(a, b, {to.data(), info().dtype});
    std::vector<float> sums(static_cast<std::size_t>(elements));
    const auto bytes = std::as_writable_bytes(std::span(sums));
    add(a, b, {bytes.data(), DType::float32});
    round_row({bytes.data(), DType::float32, std::endian::native, 1, elements},
              {to.data(), info().dtype});
  }

  std::unique_ptr<TensorSource> x_;
  std::unique_ptr<TensorSource> residual_;
  SumRounding rounding_;
  std::vector<std::byte> x_elements_;
  std::vector<std::byte> residual_elements_;
};

std::unique_ptr<TensorSource> in_c_order(std::unique_ptr<TensorSource> source, int threads) {
  if (!make_c_order_plan(source->info()).transposes) return gathered(std::move(source));
  return transposed(*source, for_each_tile(threads));
}

}  // namespace

TensorInfo sum_info(const TensorInfo& x, const TensorInfo& residual,
                    std::optional<DType> rounded_to) {
  check_same_shape(residual, x);
  const auto dtype = rounded_to ? rounded_to : exact_sum_dtype(x.dtype, residual.dtype);
  if (!dtype) {
    throw Error(
        concat(printable(residual.name), " is ", name(residual.dtype), " and ", printable(x.name),
               " is ", name(x.dtype), ": their sum has more digits than are held exactly"),
        Remedy{Remedy::Setting::rounded_sum});
  }
  TensorInfo sum = x;
  sum.dtype = *dtype;
  sum.byte_order = std::endian::native;
  if (x.order != residual.order) sum.order = MemoryOrder::c;
  return sum;
}

bool may_round_twice(DType x, DType residual, DType rounded_to) noexcept {
  const auto is_narrow = [](DType dtype) { return is_floating(dtype) && item_size(dtype) <= 2; };
  const bool has_float32 = x == DType::float32 || residual == DType::float32;
  const bool are_within =
      (is_narrow(x) || x == DType::float32) && (is_narrow(residual) || residual == DType::float32);
  return has_float32 && are_within && is_narrow(rounded_to);
}

std::unique_ptr<TensorSource> summed(std::unique_ptr<TensorSource> x,
                                     std::unique_ptr<TensorSource> residual,
                                     std::optional<DType> rounded_to, int threads,
                                     SumRounding rounding) {
  TensorInfo info = sum_info(x->info(), residual->info(), rounded_to);
  if (x->info().order != residual->info().order) {
    x = in_c_order(std::move(x), threads);
    residual = in_c_order(std::move(residual), threads);
  }
  return std::make_unique<SummedSource>(std::move(info), std::move(x), std::move(residual),
                                        rounding);
}

}  // namespace lnorm
