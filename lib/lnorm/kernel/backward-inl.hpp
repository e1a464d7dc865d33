// The backward pass (backward.hpp), narrow and wide.

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "lnorm/kernel/column_gradients.hpp"
#include "lnorm/kernel/gradient_statistics.hpp"
#include "lnorm/kernel/passes.hpp"

HWY_BEFORE_NAMESPACE();
namespace lnorm {
namespace HWY_NAMESPACE {
namespace {

// Five sums at a time: with more vectors for each there are not enough registers.
constexpr std::int64_t kGradientVectors = kWidth == 4 ? 2 : 4;
constexpr std::int64_t kGradientLanes = kGradientVectors * kWidth;

// Calls use(start, count, x less the center, dy) for all of a part, as for_each_stretch does.
template <class Use>
HWY_INLINE void for_each_pair(const GradientPart& part, double center, Use use) {
  Chunk x_chunk;
  Chunk dy_chunk;
  const bool is_usual = is_float32(part.x) && is_float32(part.dy);
  for (std::int64_t start = 0; start < part.x.row_length; start += kChunk) {
    const std::int64_t count = std::min(kChunk, part.x.row_length - start);
    const std::int64_t whole = is_usual ? count - count % kGradientLanes : 0;
    if (whole > 0) {
      const RowsIn x = part_of(part.x, start, whole);
      const RowsIn dy = part_of(part.dy, start, whole);
      const Encoded<float, false> dy_elements{dy.data, hn::Zero(kDoubles), ahead_of<float>(dy)};
      with_encoded<float>(x.data, center, ahead_of<float>(x), [&](const auto& elements) HWY_ATTR {
        use(start, whole, elements, dy_elements);
      });
    }
    if (whole == count) continue;
    decode(part_of(part.x, start + whole, count - whole), center, x_chunk);
    decode(part_of(part.dy, start + whole, count - whole), 0, dy_chunk);
    use(start + whole, count - whole, Decoded{x_chunk.high}, Decoded{dy_chunk.high});
  }
}

template <class Use>
HWY_INLINE void with_weight_or_not(const AffineTerm& weight, Use use) {
  if (weight.empty()) {
    use(std::false_type{});
  } else {
    use(std::true_type{});
  }
}

HWY_INLINE double folded_sum(const V (&lanes)[kGradientVectors]) {
  V sum = lanes[0];
  for (std::int64_t v = 1; v < kGradientVectors; ++v) sum = sum + lanes[v];
  return sum_of_lanes(sum);
}

// The lanes of the sums over at most a chunk.
struct GradientLanes {
  V x[kGradientVectors];
  V x_squares[kGradientVectors];
  V g[kGradientVectors];
  V gx[kGradientVectors];
  V g_squares[kGradientVectors];

  HWY_INLINE void clear() {
    const V zero = hn::Zero(kDoubles);
    for (std::int64_t v = 0; v < kGradientVectors; ++v) {
      x[v] = x_squares[v] = g[v] = gx[v] = g_squares[v] = zero;
    }
  }

  HWY_INLINE void add(std::int64_t v, V d, V term) {
    x[v] = x[v] + d;
    x_squares[v] = hn::MulAdd(d, d, x_squares[v]);
    g[v] = g[v] + term;
    gx[v] = hn::MulAdd(term, d, gx[v]);
    g_squares[v] = hn::MulAdd(term, term, g_squares[v]);
  }

  HWY_INLINE void add_to(GradientSums& total) const {
    total += GradientSums{{{folded_sum(x)}, {folded_sum(x_squares)}},
                          {folded_sum(g)},
                          {folded_sum(gx)},
                          folded_sum(g_squares)};
  }
};

template <bool has_weight>
HWY_INLINE V weighted(V dy, const double* weight, std::int64_t i) {
  if constexpr (has_weight) return dy * hn::LoadU(kDoubles, weight + i);
  return dy;
}

GradientSums narrow_gradient_sums(const GradientPart& part, double center,
                                  const AffineTerm& weight) {
  GradientSums total;
  GradientLanes sums;
  sums.clear();
  with_weight_or_not(weight, [&](auto has_weight) HWY_ATTR {
    const auto add = [&](std::int64_t start, std::int64_t n, const auto& x,
                         const auto& dy) HWY_ATTR {
      const double* const w = has_weight() ? weight.high(part.offset + start) : nullptr;
      GradientLanes lanes = sums;
      std::int64_t i = 0;
      for (; i + kGradientLanes <= n; i += kGradientLanes) {
        x.read_ahead(i);
        dy.read_ahead(i);
        for (std::int64_t v = 0; v < kGradientVectors; ++v) {
          const std::int64_t at = i + v * kWidth;
          lanes.add(v, x(at), weighted<has_weight()>(dy(at), w, at));
        }
      }
      for (std::int64_t v = 0; i < n; ++v, i += kWidth) {
        const auto mask = mask_of(kDoubles, n - i);
        const V g = weighted<has_weight()>(hn::IfThenElseZero(mask, dy(i)), w, i);
        lanes.add(v, hn::IfThenElseZero(mask, x(i)), hn::IfThenElseZero(mask, g));
      }
      sums = lanes;
      if ((start + n) % kChunk != 0 && start + n != part.x.row_length) return;
      sums.add_to(total);
      sums.clear();
    };
    for_each_pair(part, center, add);
  });
  return total;
}

// Results of a row or a part of it, from d = x - center, and its terms of the columns.
template <class Out, bool has_weight, bool has_dx, bool has_columns>
struct NarrowGradientWriter {
  static constexpr bool kIsFloat = std::is_same_v<Out, float>;

  V rstd;
  V slope;
  V lower;  // the constant less the error; of a narrower dtype the constant
  V upper;
  HalfResults<Out> halves;
  V xhat_at_center;
  V xhat_offset;
  V xhat_slope;

  HWY_INLINE explicit NarrowGradientWriter(const NarrowGradient& gradient)
      : rstd(splat(gradient.rstd)),
        slope(splat(gradient.slope)),
        lower(splat(gradient.constant)),
        upper(splat(gradient.constant + gradient.dx.error)),
        xhat_at_center(splat(-gradient.shift * gradient.rstd)),
        xhat_offset(splat(gradient.xhat.offset)),
        xhat_slope(splat(gradient.xhat.slope + 20 * kUnit)) {
    if constexpr (kIsFloat) {
      lower = splat(gradient.constant - gradient.dx.error);
    } else {
      halves = HalfResults<Out>(gradient.dx.error);
    }
  }

  HWY_INLINE Results results(V d, V g) const {
    const V low = hn::MulAdd(g, rstd, hn::MulAdd(d, slope, lower));
    if constexpr (kIsFloat) {
      return float_results(low, hn::MulAdd(g, rstd, hn::MulAdd(d, slope, upper)));
    } else {
      return halves(low);
    }
  }

  HWY_INLINE void add_to(const NarrowColumns& columns, std::int64_t i, V d, V dy) const {
    const auto increase = [&](double* sum, V term) HWY_ATTR {
      hn::StoreU(hn::LoadU(kDoubles, sum + i) + term, kDoubles, sum + i);
    };
    const V xhat = hn::MulAdd(d, rstd, xhat_at_center);
    const V2 sum = two_sum(hn::LoadU(kDoubles, columns.dbias + i), dy);
    hn::StoreU(sum.high, kDoubles, columns.dbias + i);
    increase(columns.dbias_error, hn::Abs(sum.low));
    increase(columns.dweight, dy * xhat);
    increase(columns.dweight_error,
             hn::Abs(dy) * hn::MulAdd(hn::Abs(xhat), xhat_slope, xhat_offset));
  }

  // By value: what has no address stays in registers.
  template <class X, class Dy, class Settle>
  static HWY_NOINLINE void write_one_by_one(NarrowGradientWriter writer, X x, Dy dy, std::int64_t i,
                                            std::int64_t n, const double* weight, std::byte* out,
                                            const Settle& settle) {
    for (; i < n; i += kWidth) {
      const V g = weighted<has_weight>(dy(i), weight, i);
      write_results<Out>(writer.results(x(i), g), n - i, out + i * kSize<Out>,
                         [&](std::int64_t j, std::byte* to) { settle(i + j, to); });
    }
  }

  template <bool stream, class X, class Dy, class Settle>
  HWY_INLINE void write(const X& x, const Dy& dy, std::int64_t n, const double* weight,
                        std::byte* out, const NarrowColumns& columns, const Settle& settle) const {
    std::int64_t i = 0;
    for (; i + kGradientLanes <= n; i += kGradientLanes) {
      x.read_ahead(i);
      dy.read_ahead(i);
      hn::Vec<F> y[kGradientVectors];
      auto open = hn::Zero(kWords);
      for (std::int64_t v = 0; v < kGradientVectors; ++v) {
        const std::int64_t at = i + v * kWidth;
        const V d = x(at);
        const V dy_at = dy(at);
        if constexpr (has_dx) {
          const Results r = results(d, weighted<has_weight>(dy_at, weight, at));
          y[v] = r.y;
          open = hn::Or(open, r.open);
        }
        if constexpr (has_columns) add_to(columns, at, d, dy_at);
      }
      if constexpr (has_dx) {
        if (HWY_UNLIKELY(!is_zero(open))) {
          write_one_by_one(*this, x, dy, i, i + kGradientLanes, weight, out, settle);
          continue;
        }
        for (std::int64_t v = 0; v < kGradientVectors; ++v) {
          store_results<Out, stream>(y[v], out + (i + v * kWidth) * kSize<Out>);
        }
      }
    }
    if (i == n) return;
    if constexpr (has_dx) write_one_by_one(*this, x, dy, i, n, weight, out, settle);
    if constexpr (has_columns) {
      for (; i < n; i += kWidth) {
        const auto mask = mask_of(kDoubles, n - i);
        add_to(columns, i, hn::IfThenElseZero(mask, x(i)), hn::IfThenElseZero(mask, dy(i)));
      }
    }
  }
};

// Has the settler decide elements of a part.
struct GradientPartSettler {
  const GradientSettler& settler;
  GradientPart part;
  DType out;

  void operator()(std::int64_t i, std::byte* to) const {
    const double result =
        settler.settle(part.offset + i, element_of(part.x, i), element_of(part.dy, i));
    store(&result, 1, out, to);
  }
};

template <class Out, bool has_weight, bool has_dx, bool has_columns>
void narrow_gradient_write_as(const GradientPart& part, const NarrowGradient& gradient,
                              const AffineTerm& weight, const RowsOut& dx,
                              const NarrowColumns* columns, const GradientSettler& settler) {
  const NarrowGradientWriter<Out, has_weight, has_dx, has_columns> writer(gradient);
  const auto write = [&](std::int64_t start, std::int64_t n, const auto& x,
                         const auto& dy) HWY_ATTR {
    const GradientPartSettler settle{
        settler,
        {part_of(part.x, start, n), part_of(part.dy, start, n), part.offset + start},
        dx.dtype};
    const double* const w = has_weight ? weight.high(part.offset + start) : nullptr;
    std::byte* const out = has_dx ? row_of(dx, start, 1).data : nullptr;
    NarrowColumns at{};
    if constexpr (has_columns) {
      at = {columns->dweight + start, columns->dbias + start, columns->dweight_error + start,
            columns->dbias_error + start};
    }
    if (has_dx && streams_to<Out>(out, dx.past_caches)) {
      writer.template write<true>(x, dy, n, w, out, at, settle);
    } else {
      writer.template write<false>(x, dy, n, w, out, at, settle);
    }
  };
  for_each_pair(part, gradient.center, write);
}

// Calls use(has_dx, has_columns) with both as types; neither is never asked for.
template <class Use>
HWY_INLINE void with_outputs(const RowsOut& dx, bool has_columns, Use use) {
  if (dx.data == nullptr) {
    use(std::false_type{}, std::true_type{});
  } else if (has_columns) {
    use(std::true_type{}, std::true_type{});
  } else {
    use(std::true_type{}, std::false_type{});
  }
}

void narrow_gradient_write(const GradientPart& part, const NarrowGradient& gradient,
                           const AffineTerm& weight, const RowsOut& dx,
                           const NarrowColumns* columns, const GradientSettler& settler) {
  with_outputs(dx, columns != nullptr, [&](auto has_dx, auto has_columns) HWY_ATTR {
    with_weight_or_not(weight, [&](auto has_weight) HWY_ATTR {
      with_narrow_type(dx.dtype, [&]<class Out>(Out) HWY_ATTR {
        narrow_gradient_write_as<Out, has_weight(), has_dx(), has_columns()>(part, gradient, weight,
                                                                             dx, columns, settler);
      });
    });
  });
}

// A sum of pairs: what high parts lose goes to the low part, which adds up without error-free transforms.
struct WideSum {
  V2 lanes[kGradientVectors];

  HWY_INLINE void clear() {
    for (V2& lane : lanes) lane = {hn::Zero(kDoubles), hn::Zero(kDoubles)};
  }
  HWY_INLINE void add(std::int64_t v, V2 term) {
    const V2 sum = two_sum(lanes[v].high, term.high);
    lanes[v] = {sum.high, lanes[v].low + (sum.low + term.low)};
  }
  HWY_INLINE DoubleDouble fold() const {
    V2 sum = two_sum(lanes[0].high, lanes[0].low);
    for (std::int64_t v = 1; v < kGradientVectors; ++v) {
      sum = sum + two_sum(lanes[v].high, lanes[v].low);
    }
    alignas(64) double high[kWidth];
    alignas(64) double low[kWidth];
    hn::Store(sum.high, kDoubles, high);
    hn::Store(sum.low, kDoubles, low);
    DoubleDouble total{high[0], low[0]};
    for (std::int64_t j = 1; j < kWidth; ++j) {
      total = lnorm::operator+(total, DoubleDouble{high[j], low[j]});
    }
    return total;
  }
};

// Elements of a chunk with their low parts, if they have them.
struct PairsAt {
  const double* high;
  const double* low;

  HWY_INLINE V2 operator()(std::int64_t i) const {
    return {hn::LoadU(kDoubles, high + i),
            low == nullptr ? hn::Zero(kDoubles) : hn::LoadU(kDoubles, low + i)};
  }
};

// Calls use(start, count, x, dy, weight) for every chunk of a part. After count elements there are zeros to the end of
// a group; weight is of no use where there is none.
template <class Use>
HWY_INLINE void for_each_wide_pair(const GradientPart& part, const AffineTerm& weight, Use use) {
  Chunk x;
  Chunk dy;
  for (std::int64_t start = 0; start < part.x.row_length; start += kChunk) {
    const std::int64_t count = std::min(kChunk, part.x.row_length - start);
    const std::int64_t whole = (count + kGradientLanes - 1) / kGradientLanes * kGradientLanes;
    decode(part_of(part.x, start, count), 0, x);
    decode(part_of(part.dy, start, count), 0, dy);
    double* const x_low = low_of(part.x, x);
    double* const dy_low = low_of(part.dy, dy);
    for (double* const numbers : {x.high, x_low, dy.high, dy_low}) {
      if (numbers != nullptr) std::fill(numbers + count, numbers + whole, 0.0);
    }
    PairsAt weights{nullptr, nullptr};
    if (!weight.empty()) {
      weights = {weight.high(part.offset + start), weight.low(part.offset + start)};
    }
    use(start, count, x, dy, PairsAt{x.high, x_low}, PairsAt{dy.high, dy_low}, weights);
  }
}

HWY_INLINE V2 weighted(V2 dy, const PairsAt& weight, std::int64_t i) {
  if (weight.high == nullptr) return dy;
  return dy * weight(i);
}

GradientSums wide_gradient_sums(const GradientPart& part, double center, const AffineTerm& weight) {
  GradientSums total;
  const V minus_center = splat(-center);
  const auto add = [&](std::int64_t, std::int64_t n, Chunk& x_chunk, Chunk&, const PairsAt& x,
                       const PairsAt& dy, const PairsAt& w) HWY_ATTR {
    const std::int64_t whole = (n + kGradientLanes - 1) / kGradientLanes * kGradientLanes;
    std::fill(x_chunk.high + n, x_chunk.high + whole, center);  // has no deviation
    WideSum sum;
    WideSum squares;
    WideSum g_sum;
    WideSum gx;
    V g_squares = hn::Zero(kDoubles);
    for (WideSum* const each : {&sum, &squares, &g_sum, &gx}) each->clear();
    for (std::int64_t i = 0; i < whole; i += kGradientLanes) {
      for (std::int64_t v = 0; v < kGradientVectors; ++v) {
        const V2 element = x(i + v * kWidth);
        const V2 apart = two_sum(element.high, minus_center);
        const V2 d = two_sum(apart.high, apart.low + element.low);
        const V2 g = weighted(dy(i + v * kWidth), w, i + v * kWidth);
        V2 square = two_product(d.high, d.high);
        square.low = hn::MulAdd(d.high + d.high, d.low, square.low);
        sum.add(v, d);
        squares.add(v, square);
        g_sum.add(v, g);
        gx.add(v, g * d);
        g_squares = hn::MulAdd(g.high, g.high, g_squares);
      }
    }
    total += GradientSums{
        {sum.fold(), squares.fold()}, g_sum.fold(), gx.fold(), sum_of_lanes(g_squares)};
  };
  for_each_wide_pair(part, weight, add);
  return total;
}

// Bounds of a vector of dx, as doubles, and its terms of the columns.
struct WideGradientWriter {
  V2 minus_mean;
  V2 rstd;
  V2 slope;
  V2 constant;
  V minus_error;
  V error;
  V relative;  // what rounding to double may add, for outputs that are rounded once more
  V xhat_offset;
  V xhat_slope;

  HWY_INLINE WideGradientWriter(const WideGradient& gradient, DType out)
      : minus_mean(splat(-gradient.mean)),
        rstd(splat(gradient.rstd)),
        slope(splat(gradient.slope)),
        constant(splat(gradient.constant)),
        minus_error(splat(0.0 - gradient.dx.error)),
        error(splat(gradient.dx.error)),
        relative(splat(out == DType::float64 ? 4 * kUnit * kUnit : 2 * kUnit)),
        xhat_offset(splat(gradient.xhat.offset)),
        xhat_slope(splat(gradient.xhat.slope)) {}

  HWY_INLINE void put_bounds(V2 deviation, V2 g, double* low, double* high) const {
    const V2 y = g * rstd + (deviation * slope + constant);
    const V margin = relative * hn::Abs(y.high);
    hn::Store(y.high + ((minus_error - margin) + y.low), kDoubles, low);
    hn::Store(y.high + ((error + margin) + y.low), kDoubles, high);
  }

  HWY_INLINE void add_to(const WideColumns& columns, std::int64_t i, V2 deviation, V2 dy) const {
    const V2 xhat = deviation * rstd;
    const auto increase = [&](double* sum, V term) HWY_ATTR {
      hn::StoreU(hn::LoadU(kDoubles, sum + i) + term, kDoubles, sum + i);
    };
    const V2 dweight = V2{hn::LoadU(kDoubles, columns.dweight_high + i),
                          hn::LoadU(kDoubles, columns.dweight_low + i)} +
                       xhat * dy;
    hn::StoreU(dweight.high, kDoubles, columns.dweight_high + i);
    hn::StoreU(dweight.low, kDoubles, columns.dweight_low + i);
    increase(columns.dweight_error,
             hn::Abs(dy.high) * hn::MulAdd(hn::Abs(xhat.high), xhat_slope, xhat_offset));
    const V2 dbias = two_sum(hn::LoadU(kDoubles, columns.dbias_high + i), dy.high);
    const V2 rest = two_sum(hn::LoadU(kDoubles, columns.dbias_low + i), dbias.low);
    const V2 last = two_sum(rest.high, dy.low);
    hn::StoreU(dbias.high, kDoubles, columns.dbias_high + i);
    hn::StoreU(last.high, kDoubles, columns.dbias_low + i);
    increase(columns.dbias_error, hn::Abs(rest.low) + hn::Abs(last.low));
  }
};

HWY_INLINE WideColumns columns_at(const WideColumns& columns, std::int64_t start) {
  return {columns.dweight_high + start, columns.dweight_low + start,   columns.dbias_high + start,
          columns.dbias_low + start,    columns.dweight_error + start, columns.dbias_error + start};
}

// The last columns of a part, fewer than a vector: in a room of their own, so that other parts' are not touched.
struct LastColumns {
  alignas(64) double room[6][kWidth] = {};

  HWY_INLINE WideColumns columns() {
    return {room[0], room[1], room[2], room[3], room[4], room[5]};
  }
  static void copy(const WideColumns& from, const WideColumns& to, std::int64_t count) {
    const auto size = static_cast<std::size_t>(count) * sizeof(double);
    std::memcpy(to.dweight_high, from.dweight_high, size);
    std::memcpy(to.dweight_low, from.dweight_low, size);
    std::memcpy(to.dbias_high, from.dbias_high, size);
    std::memcpy(to.dbias_low, from.dbias_low, size);
    std::memcpy(to.dweight_error, from.dweight_error, size);
    std::memcpy(to.dbias_error, from.dbias_error, size);
  }
};

void wide_gradient_write(const GradientPart& part, const WideGradient& gradient,
                         const AffineTerm& weight, const RowsOut& dx, const WideColumns* columns,
                         const GradientSettler& settler) {
  alignas(64) double low_ends[kChunk];
  alignas(64) double high_ends[kChunk];
  const WideGradientWriter writer(gradient, dx.dtype);
  const auto write = [&](std::int64_t start, std::int64_t n, Chunk& x_chunk, Chunk& dy_chunk,
                         const PairsAt& x, const PairsAt& dy, const PairsAt& w) HWY_ATTR {
    for (std::int64_t i = 0; i < n; i += kWidth) {
      const V2 element = x(i);
      const V2 deviation =
          x.low == nullptr ? writer.minus_mean + element.high : writer.minus_mean + element;
      const V2 dy_at = dy(i);
      if (dx.data != nullptr) {
        writer.put_bounds(deviation, weighted(dy_at, w, i), low_ends + i, high_ends + i);
      }
      if (columns == nullptr) continue;
      const WideColumns at = columns_at(*columns, start + i);
      if (n - i >= kWidth) {
        writer.add_to(at, 0, deviation, dy_at);
      } else {
        LastColumns last;
        LastColumns::copy(at, last.columns(), n - i);
        writer.add_to(last.columns(), 0, deviation, dy_at);
        LastColumns::copy(last.columns(), at, n - i);
      }
    }
    if (dx.data == nullptr) return;
    for (std::int64_t i = 0; i < n; ++i) {
      const double result = rounded(low_ends[i], dx.dtype);
      const bool decided = same_result(result, rounded(high_ends[i], dx.dtype));
      low_ends[i] = decided ? result
                            : settler.settle(part.offset + start + i,
                                             {x_chunk.high[i], x.low == nullptr ? 0 : x.low[i]},
                                             {dy_chunk.high[i], dy.low == nullptr ? 0 : dy.low[i]});
    }
    store(low_ends, n, dx.dtype, row_of(dx, start, 1).data);
  };
  for_each_wide_pair(part, weight, write);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lnorm
HWY_AFTER_NAMESPACE();
