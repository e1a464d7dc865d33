// The backward pass (backward.hpp), narrow and wide.

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "lnorm/kernel/column_gradients.hpp"
#include "lnorm/kernel/gradient_statistics.hpp"
#include "lnorm/kernel/kernel_table.hpp"

HWY_BEFORE_NAMESPACE();
namespace lnorm {
namespace HWY_NAMESPACE {
namespace {

// Five sums at a time, each in several vectors.
constexpr std::int64_t kGradientVectors = 4;
constexpr std::int64_t kGradientLanes = kGradientVectors * kWidth;

// Calls use(start, count, x less the center, dy) for all of a part, as for_each_stretch does.
template <class Use>
HWY_INLINE void for_each_pair(const GradientPart& part, double center, Use use) {
  Chunk x_chunk;
  Chunk dy_chunk;
  const bool is_fast_path = is_float32(part.x) && is_float32(part.dy);
  for (std::int64_t start = 0; start < part.x.row_length; start += kChunk) {
    const std::int64_t count = std::min(kChunk, part.x.row_length - start);
    const std::int64_t whole = is_fast_path ? count - count % kGradientLanes : 0;
    if (whole > 0) {
      const RowsIn x = part_of(part.x, start, whole);
      const RowsIn dy = part_of(part.dy, start, whole);
      const Encoded<float, false> dy_elements{dy.data, hn::Zero(kDoubles), 0};
      with_encoded<float>(x.data, center, 0, [&](const auto& elements) HWY_ATTR {
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

HWY_INLINE double reduced_sum(const V (&lanes)[kGradientVectors]) {
  V sum = lanes[0];
  for (std::int64_t v = 1; v < kGradientVectors; ++v) sum = sum + lanes[v];
  return sum_of_lanes(sum);
}

// A sum in each lane, and what its additions lose.
struct CompensatedSum {
  V sum;
  V lost;

  HWY_INLINE void clear() { sum = lost = hn::Zero(kDoubles); }
  HWY_INLINE void add(V term) {
    const V2 next = two_sum(sum, term);
    sum = next.high;
    lost = lost + next.low;
  }
  // A pair, whose low part adds up with what is lost.
  HWY_INLINE void add(V2 term) {
    const V2 next = two_sum(sum, term.high);
    sum = next.high;
    lost = lost + (next.low + term.low);
  }
  // In halves, so that additions do not wait for each other.
  HWY_INLINE DoubleDouble fold() const {
    alignas(64) double sums[kWidth];
    alignas(64) double rest[kWidth];
    hn::Store(sum, kDoubles, sums);
    hn::Store(lost, kDoubles, rest);
    for (std::int64_t half = kWidth / 2; half > 0; half /= 2) {
      for (std::int64_t j = 0; j < half; ++j) {
        const DoubleDouble both = lnorm::two_sum(sums[j], sums[j + half]);
        sums[j] = both.high;
        rest[j] = rest[j] + rest[j + half] + both.low;
      }
    }
    return lnorm::two_sum(sums[0], rest[0]);
  }
};

// The lanes of the sums over a row. Those of x have to be good, because x-hat is in every term of a column: an element
// goes through two additions that round, and what later ones lose is kept.
struct GradientLanes {
  CompensatedSum x;
  CompensatedSum x_squares;
  V g[kGradientVectors];
  V gx[kGradientVectors];
  V g_squares[kGradientVectors];

  HWY_INLINE void clear() {
    x.clear();
    x_squares.clear();
    clear_g();
  }
  HWY_INLINE void clear_g() {
    for (std::int64_t v = 0; v < kGradientVectors; ++v) {
      g[v] = gx[v] = g_squares[v] = hn::Zero(kDoubles);
    }
  }

  HWY_INLINE void add_x(const V (&d)[kGradientVectors]) {
    static_assert(kGradientVectors == 4);
    x.add((d[0] + d[1]) + (d[2] + d[3]));
    x_squares.add(hn::MulAdd(d[1], d[1], d[0] * d[0]) + hn::MulAdd(d[3], d[3], d[2] * d[2]));
  }
  HWY_INLINE void add_g(std::int64_t v, V term, V d) {
    g[v] = g[v] + term;
    gx[v] = hn::MulAdd(term, d, gx[v]);
    g_squares[v] = hn::MulAdd(term, term, g_squares[v]);
  }

  HWY_INLINE void add_g_to(GradientSums& total) const {
    total += GradientSums{{}, {reduced_sum(g)}, {reduced_sum(gx)}, reduced_sum(g_squares)};
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
        V d[kGradientVectors];
        for (std::int64_t v = 0; v < kGradientVectors; ++v) {
          const std::int64_t at = i + v * kWidth;
          d[v] = x(at);
          lanes.add_g(v, weighted<has_weight()>(dy(at), w, at), d[v]);
        }
        lanes.add_x(d);
      }
      if (i < n) {
        V d[kGradientVectors];
        for (std::int64_t v = 0; v < kGradientVectors; ++v, i += kWidth) {
          d[v] = hn::Zero(kDoubles);
          if (i >= n) continue;
          const auto mask = mask_of(kDoubles, n - i);
          d[v] = hn::IfThenElseZero(mask, x(i));
          const V g = weighted<has_weight()>(hn::IfThenElseZero(mask, dy(i)), w, i);
          lanes.add_g(v, hn::IfThenElseZero(mask, g), d[v]);
        }
        lanes.add_x(d);
      }
      sums = lanes;
      if ((start + n) % kChunk != 0 && start + n != part.x.row_length) return;
      sums.add_g_to(total);
      sums.clear_g();
    };
    for_each_pair(part, center, add);
  });
  total.x = {sums.x.fold(), sums.x_squares.fold()};
  return total;
}

// What the results of a row are made of.
struct NarrowRow {
  double center;
  double rstd;
  double slope;
  double lower;  // the constant less the error; of a dtype narrower than float the constant
  double width;  // from there to the constant and the error
  double xhat_at_center;
  double error;

  template <class Out>
  static NarrowRow of(const NarrowGradient& gradient) {
    const double error = gradient.dx.error;
    return {gradient.center,
            gradient.rstd,
            gradient.slope,
            gradient.constant - (std::is_same_v<Out, float> ? error : 0),
            2 * error,
            -gradient.shift * gradient.rstd,
            error};
  }
};

// Some columns of some rows.
struct NarrowBlock {
  const std::byte* x;
  const std::byte* dy;
  std::byte* dx;          // null where it is not wanted
  std::int64_t x_stride;  // bytes from row to row
  std::int64_t dx_stride;
  std::int64_t rows;
  std::int64_t columns;
  const double* weight;  // null: 1
  NarrowColumns sums;
};

// Columns that are summed at a time, four sums each.
constexpr std::int64_t kBlockVectors = kWidth == 8 ? 4 : 1;
constexpr std::int64_t kBlockLanes = kBlockVectors * kWidth;

// Writes dx of a block, and adds its terms to the columns: for a few columns at a time, whose sums then stay in
// registers, all rows. x and dy are of T, dx is of Out. resolve(row, column, to) puts a result where it belongs.
template <class T, class Out, bool has_center, bool has_dx, bool has_columns>
struct NarrowBlockWriter {
  static constexpr bool kIsFloat = std::is_same_v<Out, float>;

  const NarrowBlock& block;
  const NarrowRow* rows;

  // Of a vector of columns: over some rows, and of the sizes of the terms.
  struct Sums {
    V dweight;
    V dbias;
    V dweight_size;
    V dbias_size;

    HWY_INLINE void clear() { dweight = dbias = dweight_size = dbias_size = hn::Zero(kDoubles); }
  };

  static HWY_INLINE Results results(V d, V g, const NarrowRow& row) {
    const V slope = splat(row.slope);
    const V rstd = splat(row.rstd);
    const V low = hn::MulAdd(g, rstd, hn::MulAdd(d, slope, splat(row.lower)));
    if constexpr (kIsFloat) {
      return float_results(low, low + splat(row.width));
    } else {
      return HalfResults<Out>(row.error)(low);
    }
  }

  static HWY_INLINE V deviation(const std::byte* x, const NarrowRow& row) {
    const V element = load_vector<T>(x);
    if constexpr (has_center) return element - splat(row.center);
    return element;
  }

  // The vector at a column of a row, of which the first count results are wanted.
  template <class Resolve>
  HWY_NOINLINE void write_one_by_one(std::int64_t r, std::int64_t column, std::int64_t count,
                                     const std::byte* x, const std::byte* dy, V weight,
                                     const Resolve& resolve) const {
    const V g = load_vector<T>(dy) * weight;
    write_results<Out>(results(deviation(x, rows[r]), g, rows[r]), count,
                       block.dx + r * block.dx_stride + column * kSize<Out>,
                       [&](std::int64_t j, std::byte* to) { resolve(r, column + j, to); });
  }

  HWY_INLINE V weight_at(std::int64_t column) const {
    return block.weight == nullptr ? splat(1) : hn::LoadU(kDoubles, block.weight + column);
  }

  static HWY_INLINE void add(V d, V dy, const NarrowRow& row, Sums& sums) {
    const V xhat = hn::MulAdd(d, splat(row.rstd), splat(row.xhat_at_center));
    sums.dweight = hn::MulAdd(dy, xhat, sums.dweight);
    sums.dbias = sums.dbias + dy;
    const V size = hn::Abs(dy);
    sums.dweight_size = hn::MulAdd(size, hn::Abs(xhat), sums.dweight_size);
    sums.dbias_size = sums.dbias_size + size;
  }
  static HWY_INLINE void add_to_pairs(V sum, double* high, double* low) {
    const V2 total = two_sum(hn::LoadU(kDoubles, high), sum);
    hn::StoreU(total.high, kDoubles, high);
    hn::StoreU(hn::LoadU(kDoubles, low) + total.low, kDoubles, low);
  }
  static HWY_INLINE void add_to_sizes(V sum, double* sizes) {
    hn::StoreU(hn::LoadU(kDoubles, sizes) + sum, kDoubles, sizes);
  }
  HWY_INLINE void add_to_columns(const Sums& sums, std::int64_t column) const {
    const NarrowColumns& to = block.sums;
    add_to_pairs(sums.dweight, to.dweight_high + column, to.dweight_low + column);
    add_to_pairs(sums.dbias, to.dbias_high + column, to.dbias_low + column);
    add_to_sizes(sums.dweight_size, to.dweight_size + column);
    add_to_sizes(sums.dbias_size, to.dbias_size + column);
  }

  template <bool stream, class Resolve>
  HWY_INLINE void write_columns(std::int64_t column, const Resolve& resolve) const {
    V weight[kBlockVectors];
    Sums sums[kBlockVectors];
    for (std::int64_t v = 0; v < kBlockVectors; ++v) {
      weight[v] = weight_at(column + v * kWidth);
      sums[v].clear();
    }
    const std::byte* x = block.x + column * kSize<T>;
    const std::byte* dy = block.dy + column * kSize<T>;
    std::byte* dx = block.dx + (has_dx ? column * kSize<Out> : 0);
    for (std::int64_t r = 0; r < block.rows; ++r) {
      const NarrowRow& row = rows[r];
      // No hardware looks ahead in so many rows.
      prefetch(x + 2 * kBlockLanes * kSize<T>, kBlockLanes * kSize<T>);
      prefetch(dy + 2 * kBlockLanes * kSize<T>, kBlockLanes * kSize<T>);
      // Memory brings the next rows while these are computed.
      prefetch(x + block.rows * block.x_stride, kBlockLanes * kSize<T>);
      prefetch(dy + block.rows * block.x_stride, kBlockLanes * kSize<T>);
      if constexpr (has_dx && !stream) {
        prefetch(dx + 2 * kBlockLanes * kSize<Out>, kBlockLanes * kSize<Out>);
      }
      hn::Vec<F> y[kBlockVectors];
      auto open = hn::Zero(kWords);
      for (std::int64_t v = 0; v < kBlockVectors; ++v) {
        const V d = deviation(x + v * kWidth * kSize<T>, row);
        const V dy_at = load_vector<T>(dy + v * kWidth * kSize<T>);
        if constexpr (has_dx) {
          const Results result = results(d, dy_at * weight[v], row);
          y[v] = result.y;
          open = hn::Or(open, result.open);
        }
        if constexpr (has_columns) add(d, dy_at, row, sums[v]);
      }
      if constexpr (has_dx) {
        for (std::int64_t v = 0; v < kBlockVectors; ++v) {
          store_results<Out, stream>(y[v], dx + v * kWidth * kSize<Out>);
        }
        if (HWY_UNLIKELY(!is_zero(open))) {
          for (std::int64_t v = 0; v < kBlockVectors; ++v) {
            const std::int64_t at = v * kWidth * kSize<T>;
            write_one_by_one(r, column + v * kWidth, kWidth, x + at, dy + at, weight[v], resolve);
          }
        }
        dx += block.dx_stride;
      }
      x += block.x_stride;
      dy += block.x_stride;
    }
    if constexpr (has_columns) {
      HWY_UNROLL(4)  // a loop would keep the sums in memory, above as well
      for (std::int64_t v = 0; v < kBlockVectors; ++v) {
        add_to_columns(sums[v], column + v * kWidth);
      }
    }
  }

  // A vector of the last columns, or less.
  template <class Resolve>
  HWY_INLINE void write_last(std::int64_t column, const Resolve& resolve) const {
    const std::int64_t count = std::min(kWidth, block.columns - column);
    const auto size = static_cast<std::size_t>(count * kSize<T>);
    const V weight = weight_at(column);
    const auto mask = mask_of(kDoubles, count);
    for (std::int64_t r = 0; r < block.rows; ++r) {
      alignas(64) std::byte x[kWidth * kSize<T>] = {};
      alignas(64) std::byte dy[kWidth * kSize<T>] = {};
      std::memcpy(x, block.x + r * block.x_stride + column * kSize<T>, size);
      std::memcpy(dy, block.dy + r * block.x_stride + column * kSize<T>, size);
      if constexpr (has_dx) write_one_by_one(r, column, count, x, dy, weight, resolve);
      if constexpr (has_columns) {
        Sums sums;
        sums.clear();
        add(hn::IfThenElseZero(mask, deviation(x, rows[r])), load_vector<T>(dy), rows[r], sums);
        add_to_columns(sums, column);
      }
    }
  }

  template <bool stream, class Resolve>
  HWY_INLINE void write(const Resolve& resolve) const {
    std::int64_t column = 0;
    for (; column + kBlockLanes <= block.columns; column += kBlockLanes) {
      write_columns<stream>(column, resolve);
    }
    for (; column < block.columns; column += kWidth) write_last(column, resolve);
  }
};

// Each combination of template arguments takes seconds to compile, so those that bring little are left out: decoded
// elements are less their center already, and their results are not written past the caches; a center of 0 is
// subtracted, too, unless elements are float.
template <class T, class Out, class Resolve>
HWY_INLINE void write_block(const NarrowBlock& block, const NarrowRow* rows, bool non_temporal,
                            const Resolve& resolve) {
  constexpr bool is_decoded = std::is_same_v<T, double>;
  const auto write = [&](auto has_center, auto has_dx, auto has_columns) HWY_ATTR {
    const NarrowBlockWriter<T, Out, has_center(), has_dx(), has_columns()> writer{block, rows};
    if constexpr (has_dx() && !is_decoded) {
      // From one row to the next only whole cache lines go past the caches.
      constexpr std::int64_t kLine = 64;
      const bool fills_lines =
          kBlockLanes * kSize<Out> % kLine == 0 && block.dx_stride % kLine == 0;
      if (streams_to<Out>(block.dx, non_temporal) && fills_lines &&
          reinterpret_cast<std::uintptr_t>(block.dx) % kLine == 0) {
        return writer.template write<true>(resolve);
      }
    }
    writer.template write<false>(resolve);
  };
  const auto write_with = [&](auto has_center) HWY_ATTR {
    if (block.dx == nullptr) {
      write(has_center, std::false_type{}, std::true_type{});
    } else if (block.sums.dweight_high != nullptr) {
      write(has_center, std::true_type{}, std::true_type{});
    } else {
      write(has_center, std::true_type{}, std::false_type{});
    }
  };
  if constexpr (is_decoded) {
    write_with(std::false_type{});
  } else {
    if constexpr (std::is_same_v<T, float>) {
      const bool has_center = std::any_of(rows, rows + block.rows,
                                          [](const NarrowRow& row) { return row.center != 0; });
      if (!has_center) return write_with(std::false_type{});
    }
    write_with(std::true_type{});
  }
}

// Rows of the dtypes that most tensors are of are read where they lie; others are decoded, row by row.
void narrow_gradient_write(const GradientPart& part, const NarrowGradient* gradients,
                           const AffineTerm& weight, const RowsOut& dx,
                           const NarrowColumns* columns, const GradientResolver& resolver) {
  const std::int64_t n = part.x.row_length;
  const auto resolve_from = [&](std::int64_t first_row, std::int64_t first_column) {
    return [&resolver, &part, &dx, first_row, first_column](std::int64_t r, std::int64_t column,
                                                            std::byte* to) {
      const std::int64_t row = first_row + r;
      const std::int64_t index = first_column + column;
      const double result =
          resolver.resolve(row, part.offset + index, element_of(row_of(part.x, row), index),
                           element_of(row_of(part.dy, row), index));
      store(&result, 1, dx.dtype, to);
    };
  };
  const auto sums_at = [&](std::int64_t column) {
    if (columns == nullptr) return NarrowColumns{};
    return NarrowColumns{columns->dweight_high + column, columns->dweight_low + column,
                         columns->dbias_high + column,   columns->dbias_low + column,
                         columns->dweight_size + column, columns->dbias_size + column};
  };
  const bool is_native =
      part.x.byte_order == std::endian::native && part.dy.byte_order == std::endian::native;
  const bool is_fast_path = is_native && part.x.dtype == part.dy.dtype &&
                            part.x.dtype == dx.dtype && (dx.dtype != DType::float16 || kHasFloat16);
  with_narrow_type(dx.dtype, [&]<class Out>(Out) HWY_ATTR {
    if (is_fast_path) {
      NarrowRow rows[kMaxGradientRows];
      for (std::int64_t r = 0; r < part.x.rows; ++r) rows[r] = NarrowRow::of<Out>(gradients[r]);
      for (std::int64_t start = 0; start < n; start += kChunk) {
        const NarrowBlock block{part.x.data + start * kSize<Out>,
                                part.dy.data + start * kSize<Out>,
                                dx.data == nullptr ? nullptr : dx.data + start * kSize<Out>,
                                n * kSize<Out>,
                                n * kSize<Out>,
                                part.x.rows,
                                std::min(kChunk, n - start),
                                weight.empty() ? nullptr : weight.high(part.offset + start),
                                sums_at(start)};
        write_block<Out, Out>(block, rows, dx.non_temporal, resolve_from(0, start));
      }
      return;
    }
    Chunk x;
    Chunk dy;
    for (std::int64_t r = 0; r < part.x.rows; ++r) {
      const NarrowRow row = NarrowRow::of<Out>(gradients[r]);
      for (std::int64_t start = 0; start < n; start += kChunk) {
        const std::int64_t count = std::min(kChunk, n - start);
        decode(part_of(row_of(part.x, r), start, count), row.center, x);
        decode(part_of(row_of(part.dy, r), start, count), 0, dy);
        const NarrowBlock block{
            reinterpret_cast<const std::byte*>(x.high),
            reinterpret_cast<const std::byte*>(dy.high),
            dx.data == nullptr ? nullptr : row_of(row_of(dx, n, r), start, 1).data,
            0,
            0,
            1,
            count,
            weight.empty() ? nullptr : weight.high(part.offset + start),
            sums_at(start)};
        write_block<double, Out>(block, &row, false, resolve_from(r, start));
      }
    }
  });
}

// A sum of pairs.
struct WideSum {
  CompensatedSum lanes[kGradientVectors];

  HWY_INLINE void clear() {
    for (CompensatedSum& lane : lanes) lane.clear();
  }
  HWY_INLINE void add(std::int64_t v, V2 term) { lanes[v].add(term); }
  HWY_INLINE DoubleDouble fold() const {
    CompensatedSum total = lanes[0];
    for (std::int64_t v = 1; v < kGradientVectors; ++v) {
      total.add(V2{lanes[v].sum, lanes[v].lost});
    }
    return total.fold();
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
  alignas(64) double buffer[6][kWidth] = {};

  HWY_INLINE WideColumns columns() {
    return {buffer[0], buffer[1], buffer[2], buffer[3], buffer[4], buffer[5]};
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
                         const GradientResolver& resolver) {
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
      low_ends[i] = decided
                        ? result
                        : resolver.resolve(0, part.offset + start + i,
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
