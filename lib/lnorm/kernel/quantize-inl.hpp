// Quotients that are rounded to bytes.

#if defined(LNORM_KERNEL_QUANTIZE_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef LNORM_KERNEL_QUANTIZE_INL_HPP_
#undef LNORM_KERNEL_QUANTIZE_INL_HPP_
#else
#define LNORM_KERNEL_QUANTIZE_INL_HPP_
#endif

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "lnorm/kernel/results-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace lnorm {
namespace HWY_NAMESPACE {
namespace {

struct Int8Bytes {
  using Bits = hn::Vec<hn::RebindToSigned<F>>;
  explicit Int8Bytes(const RowsOut&) {}

  HWY_INLINE Bits rounded(hn::Vec<F> value) const {
    const auto most = hn::Set(F(), 200.0F);
    const auto integer = hn::NearestInt(hn::Max(hn::Min(value, most), hn::Neg(most)));
    const hn::RebindToSigned<F> integers;
    return hn::Max(hn::Min(integer, hn::Set(integers, 127)), hn::Set(integers, -128));
  }
  static HWY_INLINE void store(Bits bits, std::byte* to) {
    const hn::Rebind<std::int8_t, D> bytes;
    hn::StoreU(hn::DemoteTo(bytes, bits), bytes, reinterpret_cast<std::int8_t*>(to));
  }
};

template <class Out>
struct Float8Bytes {
  using Bits = hn::Vec<Words>;
  hn::Vec<F> most;
  explicit Float8Bytes(const RowsOut& q) : most(hn::Set(F(), most_of(q))) {}

  HWY_INLINE Bits rounded(hn::Vec<F> value) const { return Float8Bits<Out, F>(value, most).bits(); }
  static HWY_INLINE void store(Bits bits, std::byte* to) {
    const hn::RebindToSigned<F> integers;
    const hn::Rebind<std::uint8_t, D> bytes;
    hn::StoreU(hn::DemoteTo(bytes, hn::BitCast(integers, bits)), bytes,
               reinterpret_cast<std::uint8_t*>(to));
  }
};

// y and inverse, and their product, are rounded to nearest: the product is within 2^-22 of itself, or below all that counts.
template <class Bytes>
void quantize_to(const Bytes& bytes, const QuantizedRow& row, const RowsOut& q,
                 const Resolver& resolver) {
  constexpr F kFloats{};
  alignas(64) std::byte results[kChunk + kWidth];
  for (std::int64_t start = 0; start < row.count; start += kChunk) {
    const std::int64_t n = std::min(kChunk, row.count - start);
    for (std::int64_t i = 0; i < n; i += kWidth) {
      const auto inverse = row.one_inverse ? hn::Set(kFloats, *row.inverse)
                                           : hn::LoadU(kFloats, row.inverse + start + i);
      const auto value = hn::Mul(hn::LoadU(kFloats, row.y + start + i), inverse);
      const auto error = hn::Mul(hn::Abs(value), hn::Set(kFloats, 0x1p-21F));
      const auto low = bytes.rounded(hn::Sub(value, error));
      const auto high = bytes.rounded(hn::Add(value, error));
      bytes.store(low, results + i);
      const auto differ = hn::Xor(hn::BitCast(kWords, low), hn::BitCast(kWords, high));
      if (HWY_LIKELY(is_zero(differ))) continue;
      alignas(64) std::uint32_t is_undecided[kWidth];
      hn::Store(differ, kWords, is_undecided);
      for (std::int64_t j = i; j < std::min(i + kWidth, n); ++j) {
        if (is_undecided[j - i] == 0) continue;
        const double result = resolver.resolve(row.first + start + j, {});
        lnorm::store(&result, 1, q.dtype, results + j, true);
      }
    }
    std::memcpy(q.data + start, results, static_cast<std::size_t>(n));
  }
}

void quantize(const QuantizedRow& row, const RowsOut& q, const Resolver& resolver) {
  if (q.dtype == DType::int8) return quantize_to(Int8Bytes(q), row, q, resolver);
  with_float8(q.dtype,
              [&]<class Out>(Out) HWY_ATTR { quantize_to(Float8Bytes<Out>(q), row, q, resolver); });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lnorm
HWY_AFTER_NAMESPACE();

#endif
