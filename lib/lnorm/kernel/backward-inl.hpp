// The backward pass (backward.hpp), in doubles and double-doubles.

#if defined(LNORM_KERNEL_BACKWARD_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef LNORM_KERNEL_BACKWARD_INL_HPP_
#undef LNORM_KERNEL_BACKWARD_INL_HPP_
#else
#define LNORM_KERNEL_BACKWARD_INL_HPP_
#endif

#include <algorithm>
#include <cstdint>

#include "lnorm/kernel/column_gradients.hpp"
#include "lnorm/kernel/gradient_rows-inl.hpp"
#include "lnorm/kernel/gradient_statistics.hpp"
#include "lnorm/kernel/kernel_table.hpp"
#include "lnorm/kernel/results-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace lnorm {
namespace HWY_NAMESPACE {
namespace {

// What the results of rows are made of, beside their gradients.
template <class Out>
struct WrittenRows {
  using Numbers = DoubleGradients::Numbers;

  alignas(64)
      Numbers lower;  // the constant less the error; of a dtype narrower than float the constant
  alignas(64) Numbers width;  // from there to the constant and the error
  alignas(64) Numbers xhat_at_center;
  const DoubleGradients& of;
  std::array<HalfResults<Out, true>, kMaxGradientRows> halves;
  bool has_center;

  HWY_INLINE explicit WrittenRows(const DoubleGradients& gradients) : of(gradients) {
    auto is_zero = hn::Eq(splat(0), splat(0));
    for (std::size_t r = 0; r < kMaxGradientRows; r += kWidth) {
      is_zero = hn::And(is_zero, hn::Eq(hn::Load(kDoubles, &of.center[r]), hn::Zero(kDoubles)));
      const V error = hn::Load(kDoubles, &of.error[r]);
      V low = hn::Load(kDoubles, &of.constant[r]);
      if constexpr (std::is_same_v<Out, float>) low = low - error;
      hn::Store(low, kDoubles, &lower[r]);
      hn::Store(error + error, kDoubles, &width[r]);
      hn::Store(negated(hn::Load(kDoubles, &of.shift[r]) * hn::Load(kDoubles, &of.rstd[r])),
                kDoubles, &xhat_at_center[r]);
    }
    has_center = !hn::AllTrue(kDoubles, is_zero);
    if constexpr (!std::is_same_v<Out, float>) {
      for (std::size_t r = 0; r < kMaxGradientRows; ++r)
        halves[r] = HalfResults<Out, true>(of.error[r]);
    }
  }
};

// Some columns of some rows.
struct DoubleBlock {
  const std::byte* x;
  const std::byte* dy;
  std::byte* dx;          // null where it is not wanted
  std::int64_t x_stride;  // bytes from row to row
  std::int64_t dx_stride;
  std::int64_t first;  // of the rows that there are gradients of
  std::int64_t rows;
  std::int64_t columns;
  const double* weight;  // null: 1
  ColumnSums sums;
};

// Columns that are summed at a time, four sums each.
constexpr std::int64_t kBlockVectors = kWidth == 8 ? 4 : 1;
constexpr std::int64_t kBlockLanes = kBlockVectors * kWidth;

// Writes dx of a block, and adds its terms to the columns: for a few columns at a time, whose sums then stay in
// registers, all rows. x and dy are of T, dx is of Out. resolve(row, column, to) puts a result where it belongs.
template <class T, class Out, bool has_center, bool has_dx, bool has_columns>
struct DoubleBlockWriter {
  static constexpr bool kIsFloat = std::is_same_v<Out, float>;

  const DoubleBlock& block;
  const WrittenRows<Out>& rows;

  // The sums of a vector of columns over some rows, of the terms and of their sizes.
  struct Sums {
    V dweight;
    V dbias;
    V dweight_size;
    V dbias_size;

    HWY_INLINE void clear() { dweight = dbias = dweight_size = dbias_size = hn::Zero(kDoubles); }
  };

  HWY_INLINE Results results(V d, V g, std::size_t row) const {
    const V low =
        dx_of(g, d, splat(rows.of.rstd[row]), splat(rows.of.slope[row]), splat(rows.lower[row]));
    if constexpr (kIsFloat) {
      return float_results(low, low + splat(rows.width[row]));
    } else {
      return rows.halves[row](low);
    }
  }

  HWY_INLINE V deviation(const std::byte* x, std::size_t row) const {
    const V element = load_vector<T>(x);
    if constexpr (has_center) return element - splat(rows.of.center[row]);
    return element;
  }

  // Where the gradient of a row of the block is.
  HWY_INLINE std::size_t at(std::int64_t r) const {
    return static_cast<std::size_t>(block.first + r);
  }

  // The vector at a column of a row, of which the first count results are wanted.
  template <class Resolve>
  HWY_NOINLINE void write_one_by_one(std::int64_t r, std::int64_t column, std::int64_t count,
                                     const std::byte* x, const std::byte* dy, V weight,
                                     const Resolve& resolve) const {
    const V g = load_vector<T>(dy) * weight;
    write_results<Out>(results(deviation(x, at(r)), g, at(r)), count,
                       block.dx + r * block.dx_stride + column * kSize<Out>,
                       [&](std::int64_t j, std::byte* to) { resolve(r, column + j, to); });
  }

  HWY_INLINE V weight_at(std::int64_t column) const {
    return block.weight == nullptr ? splat(1) : hn::LoadU(kDoubles, block.weight + column);
  }

  HWY_INLINE void add(V d, V dy, std::size_t row, Sums& sums) const {
    const V xhat = xhat_of(d, splat(rows.of.rstd[row]), splat(rows.xhat_at_center[row]));
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
    const ColumnSums to{block.sums.first + column, block.sums.stride};
    add_to_pairs(sums.dweight, to.dweight_high(), to.dweight_low());
    add_to_pairs(sums.dbias, to.dbias_high(), to.dbias_low());
    add_to_sizes(sums.dweight_size, to.dweight_bound());
    add_to_sizes(sums.dbias_size, to.dbias_bound());
  }

  template <bool stream, std::int64_t vectors, class Resolve>
  HWY_INLINE void write_columns(std::int64_t column, const Resolve& resolve) const {
    for (std::int64_t r = 0; r < block.rows; r += kMaxSummedRows) {
      write_columns<stream, vectors>(column, r, std::min(block.rows, r + kMaxSummedRows), resolve);
    }
  }

  template <bool stream, std::int64_t vectors, class Resolve>
  HWY_INLINE void write_columns(std::int64_t column, std::int64_t first_row, std::int64_t end_row,
                                const Resolve& resolve) const {
    constexpr std::int64_t kLanesAtOnce = vectors * kWidth;
    V weight[vectors];
    Sums sums[vectors];
    for (std::int64_t v = 0; v < vectors; ++v) {
      weight[v] = weight_at(column + v * kWidth);
      sums[v].clear();
    }
    const std::byte* x = block.x + first_row * block.x_stride + column * kSize<T>;
    const std::byte* dy = block.dy + first_row * block.x_stride + column * kSize<T>;
    std::byte* dx = block.dx + (has_dx ? first_row * block.dx_stride + column * kSize<Out> : 0);
    for (std::int64_t r = first_row; r < end_row; ++r) {
      const std::size_t row = at(r);
      // No hardware looks ahead in so many rows.
      prefetch(x + 2 * kLanesAtOnce * kSize<T>, kLanesAtOnce * kSize<T>);
      prefetch(dy + 2 * kLanesAtOnce * kSize<T>, kLanesAtOnce * kSize<T>);
      // Memory brings the next rows while these are computed.
      prefetch(x + block.rows * block.x_stride, kLanesAtOnce * kSize<T>);
      prefetch(dy + block.rows * block.x_stride, kLanesAtOnce * kSize<T>);
      if constexpr (has_dx && !stream) {
        prefetch(dx + 2 * kLanesAtOnce * kSize<Out>, kLanesAtOnce * kSize<Out>);
      }
      hn::Vec<F> y[vectors];
      auto undecided = hn::Zero(kWords);
      for (std::int64_t v = 0; v < vectors; ++v) {
        const V d = deviation(x + v * kWidth * kSize<T>, row);
        const V dy_at = load_vector<T>(dy + v * kWidth * kSize<T>);
        if constexpr (has_dx) {
          const Results result = results(d, dy_at * weight[v], row);
          y[v] = result.y;
          undecided = hn::Or(undecided, result.undecided);
        }
        if constexpr (has_columns) add(d, dy_at, row, sums[v]);
      }
      if constexpr (has_dx) {
        for (std::int64_t v = 0; v < vectors; ++v) {
          store_results<Out, stream>(y[v], dx + v * kWidth * kSize<Out>);
        }
        if (HWY_UNLIKELY(!is_zero(undecided))) {
          for (std::int64_t v = 0; v < vectors; ++v) {
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
      for (std::int64_t v = 0; v < vectors; ++v) {
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
        add(hn::IfThenElseZero(mask, deviation(x, at(r))), load_vector<T>(dy), at(r), sums);
        add_to_columns(sums, column);
      }
    }
  }

  template <bool stream, class Resolve>
  HWY_INLINE void write(const Resolve& resolve) const {
    std::int64_t column = 0;
    for (; column + kBlockLanes <= block.columns; column += kBlockLanes) {
      write_columns<stream, kBlockVectors>(column, resolve);
    }
    if constexpr (std::is_same_v<T, float>) {  // of others it takes seconds to compile
      for (; column + 2 * kWidth <= block.columns; column += 2 * kWidth) {
        write_columns<stream, 2>(column, resolve);
      }
    }
    for (; column + kWidth <= block.columns; column += kWidth) {
      write_columns<false, 1>(column, resolve);
    }
    if (column < block.columns) write_last(column, resolve);
  }
};

// Each combination of template arguments takes seconds to compile, so those that bring little are left out: decoded
// elements are less their center already, and their results are not written past the caches; a center of 0 is
// subtracted, too, unless elements are float.
template <class T, class Out, class Resolve>
HWY_INLINE void write_block(const DoubleBlock& block, const WrittenRows<Out>& rows,
                            bool non_temporal, const Resolve& resolve) {
  constexpr bool is_decoded = std::is_same_v<T, double>;
  const auto write = [&](auto has_center, auto has_dx, auto has_columns) HWY_ATTR {
    const DoubleBlockWriter<T, Out, has_center(), has_dx(), has_columns()> writer{block, rows};
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
    } else if (block.sums.first != nullptr) {
      write(has_center, std::true_type{}, std::true_type{});
    } else {
      write(has_center, std::true_type{}, std::false_type{});
    }
  };
  if constexpr (is_decoded) {
    write_with(std::false_type{});
  } else {
    if constexpr (std::is_same_v<T, float>) {
      if (!rows.has_center) return write_with(std::false_type{});
    }
    write_with(std::true_type{});
  }
}

// Rows on their way to double_gradient_write's results. Those of the dtypes that most tensors are of are read where they lie;
// others are decoded first.
template <class Out>
struct DoubleGradientRows {
  const WrittenRows<Out> rows;
  const GradientPart& part;
  const std::int64_t first;  // of these rows
  const AffineTerm& weight;
  const RowsOut& dx;
  const ColumnSums& columns;
  const GradientResolver& resolver;

  template <class T>
  HWY_INLINE void write_where_they_lie() const {
    const std::int64_t stride = part.x.row_length * kSize<T>;
    for (std::int64_t start = 0; start < part.x.row_length; start += kChunk) {
      const std::byte* const x = part.x.data + start * kSize<T>;
      const std::byte* const dy = part.dy.data + start * kSize<T>;
      write<T>(x, dy, stride, start, std::min(kChunk, part.x.row_length - start));
    }
  }

  HWY_INLINE void write_decoded() const {
    constexpr std::int64_t kColumns = kChunk / kMaxGradientRows;  // a chunk has all rows
    alignas(64) double x[kChunk];
    alignas(64) double dy[kChunk];
    for (std::int64_t start = 0; start < part.x.row_length; start += kColumns) {
      const std::int64_t count = std::min(kColumns, part.x.row_length - start);
      for (std::int64_t r = 0; r < part.x.rows; ++r) {
        const RowsIn x_part = part_of(row_of(part.x, r), start, count);
        const double center = rows.of.center[static_cast<std::size_t>(first + r)];
        decode_row(x_part, center, x + r * kColumns, ahead_of(x_part));
        decode_row(part_of(row_of(part.dy, r), start, count), 0, dy + r * kColumns,
                   ahead_of(x_part));
      }
      write<double>(reinterpret_cast<const std::byte*>(x), reinterpret_cast<const std::byte*>(dy),
                    kColumns * kSize<double>, start, count);
    }
  }

 private:
  // So many columns of all rows from start on. Their elements x and dy are of T.
  template <class T>
  HWY_INLINE void write(const std::byte* x, const std::byte* dy, std::int64_t stride,
                        std::int64_t start, std::int64_t count) const {
    const std::int64_t n = part.x.row_length;
    const DoubleBlock block{x,
                            dy,
                            dx.data == nullptr ? nullptr : dx.data + start * kSize<Out>,
                            stride,
                            n * kSize<Out>,
                            first,
                            part.x.rows,
                            count,
                            weight.empty() ? nullptr : weight.high(part.offset + start),
                            columns.from(start)};
    const auto resolve = [&](std::int64_t r, std::int64_t column, std::byte* to) {
      const std::int64_t index = start + column;
      const double result =
          resolver.resolve(r, part.offset + index, element_of(row_of(part.x, r), index),
                           element_of(row_of(part.dy, r), index));
      store(&result, 1, dx.dtype, to);
    };
    write_block<T, Out>(block, rows, dx.non_temporal, resolve);
  }
};

void double_gradient_write(const GradientPart& part, const DoubleGradients& gradients,
                           std::int64_t first, const AffineTerm& weight, const RowsOut& dx,
                           const ColumnSums& columns, const GradientResolver& resolver) {
  with_type<Float16, BFloat16, float>(dx.dtype, [&]<class Out>(Out) HWY_ATTR {
    const DoubleGradientRows<Out> rows{
        WrittenRows<Out>(gradients), part, first, weight, dx, columns, resolver};
    bool is_written = false;
    with_pairs_of_floats(part, [&]<class T>(T) HWY_ATTR {
      if constexpr (std::is_same_v<T, Out> || std::is_same_v<float, Out>) {
        rows.template write_where_they_lie<T>();
        is_written = true;
      }
    });
    if (!is_written) rows.write_decoded();
  });
}

// Elements of a chunk with their low parts, if they have them.
struct PairsAt {
  const double* high;
  const double* low;

  HWY_INLINE V2 operator()(std::int64_t i) const {
    return {hn::LoadU(kDoubles, high + i),
            low == nullptr ? hn::Zero(kDoubles) : hn::LoadU(kDoubles, low + i)};
  }
  Number number(std::int64_t i) const { return {high[i], low == nullptr ? 0 : low[i]}; }
};

// Calls use(start, count, chunk of x, x, dy, weight) for every chunk of a part. After count elements there are zeros to the end of
// a group; weight is of no use where there is none.
template <class Use>
HWY_INLINE void for_each_chunk_of_pairs(const GradientPart& part, const AffineTerm& weight,
                                        Use use) {
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
    use(start, count, x, PairsAt{x.high, x_low}, PairsAt{dy.high, dy_low}, weights);
  }
}

HWY_INLINE V2 weighted(V2 dy, const PairsAt& weight, std::int64_t i) {
  if (weight.high == nullptr) return dy;
  return dy * weight(i);
}

GradientSums double_double_gradient_sums(const GradientPart& part, double center,
                                         const AffineTerm& weight) {
  GradientSums total;
  const V minus_center = splat(-center);
  const auto add = [&](std::int64_t, std::int64_t n, Chunk& x_chunk, const PairsAt& x,
                       const PairsAt& dy, const PairsAt& w) HWY_ATTR {
    const std::int64_t whole = (n + kGradientLanes - 1) / kGradientLanes * kGradientLanes;
    std::fill(x_chunk.high + n, x_chunk.high + whole, center);  // has no deviation
    using DoubleDoubleSum = CompensatedSums<kGradientVectors>;
    DoubleDoubleSum sum;
    DoubleDoubleSum squares;
    DoubleDoubleSum g_sum;
    DoubleDoubleSum gx;
    V g_squares = hn::Zero(kDoubles);
    for (DoubleDoubleSum* const each : {&sum, &squares, &g_sum, &gx}) each->clear();
    for (std::int64_t i = 0; i < whole; i += kGradientLanes) {
      for (std::int64_t v = 0; v < kGradientVectors; ++v) {
        const V2 element = x(i + v * kWidth);
        const V2 apart = two_sum(element.high, minus_center);
        const V2 d = two_sum(apart.high, apart.low + element.low);
        const V2 g = weighted(dy(i + v * kWidth), w, i + v * kWidth);
        V2 square = two_product(d.high, d.high);
        square.low = hn::MulAdd(d.high + d.high, d.low, square.low);
        sum.v[v].add(d);
        squares.v[v].add(square);
        g_sum.v[v].add(g);
        gx.v[v].add(g * d);
        g_squares = hn::MulAdd(g.high, g.high, g_squares);
      }
    }
    total += GradientSums{
        {sum.fold(), squares.fold()}, g_sum.fold(), gx.fold(), sum_of_lanes(g_squares)};
  };
  for_each_chunk_of_pairs(part, weight, add);
  return total;
}

// Bounds of a vector of dx, as doubles, and its terms of the columns.
struct DoubleDoubleGradientWriter {
  V2 minus_mean;
  V2 rstd;
  V2 slope;
  V2 constant;
  V error;
  V relative;  // rounding_of_ends()
  V xhat_offset;
  V xhat_slope;

  HWY_INLINE DoubleDoubleGradientWriter(const DoubleDoubleGradient& gradient, DType out)
      : minus_mean(splat(-gradient.mean)),
        rstd(splat(gradient.rstd)),
        slope(splat(gradient.slope)),
        constant(splat(gradient.constant)),
        error(splat(gradient.dx.error)),
        relative(splat(rounding_of_ends(out))),
        xhat_offset(splat(gradient.xhat.offset)),
        xhat_slope(splat(gradient.xhat.slope)) {}

  HWY_INLINE Ends bounds(V2 deviation, V2 g) const {
    const V2 y = dx_of(g, deviation, rstd, slope, constant);
    return ends_of(y, error + relative * hn::Abs(y.high));
  }

  // Adds the terms of a vector of columns.
  HWY_INLINE void add_to(const ColumnSums& columns, V2 deviation, V2 dy) const {
    const V2 xhat = xhat_of(deviation, rstd);
    const auto increase = [](double* sum, V term) HWY_ATTR {
      hn::StoreU(hn::LoadU(kDoubles, sum) + term, kDoubles, sum);
    };
    const V2 dweight = V2{hn::LoadU(kDoubles, columns.dweight_high()),
                          hn::LoadU(kDoubles, columns.dweight_low())} +
                       xhat * dy;
    hn::StoreU(dweight.high, kDoubles, columns.dweight_high());
    hn::StoreU(dweight.low, kDoubles, columns.dweight_low());
    // Below the normal numbers both products, x-hat and dy x-hat, lose bits. Those of 0 do not.
    const V size = hn::Abs(dy.high);
    const V lost = hn::Min(hn::Abs(deviation.high), splat(kLostBits));
    const V xhat_error =
        hn::MulAdd(hn::Abs(xhat.high), xhat_slope, hn::MulAdd(lost, splat(kLosses), xhat_offset));
    const V of_sum = splat(kPairSumError) * hn::Abs(dweight.high);
    increase(columns.dweight_bound(), hn::MulAdd(size, xhat_error, hn::Min(size, lost) + of_sum));
    const V2 dbias = two_sum(hn::LoadU(kDoubles, columns.dbias_high()), dy.high);
    const V2 rest = two_sum(hn::LoadU(kDoubles, columns.dbias_low()), dbias.low);
    const V2 last = two_sum(rest.high, dy.low);
    hn::StoreU(dbias.high, kDoubles, columns.dbias_high());
    hn::StoreU(last.high, kDoubles, columns.dbias_low());
    increase(columns.dbias_bound(), hn::Abs(rest.low) + hn::Abs(last.low));
  }

  // Adds those of the first columns alone, by way of a buffer, so that other parts' columns are not touched.
  HWY_NOINLINE void add_to_first(std::int64_t count, const ColumnSums& columns, V2 deviation,
                                 V2 dy) const {
    alignas(64) double buffer[ColumnSums::kArrays * kWidth] = {};
    const ColumnSums first{buffer, kWidth};
    copy(columns, first, count);
    add_to(first, deviation, dy);
    copy(first, columns, count);
  }

 private:
  static void copy(const ColumnSums& from, const ColumnSums& to, std::int64_t count) {
    for (std::size_t k = 0; k < ColumnSums::kArrays; ++k) {
      std::copy_n(from.first + k * from.stride, count, to.first + k * to.stride);
    }
  }
};

void double_double_gradient_write(const GradientPart& part, const DoubleDoubleGradient& gradient,
                                  const AffineTerm& weight, const RowsOut& dx,
                                  const ColumnSums& columns, const GradientResolver& resolver) {
  alignas(64) double low_ends[kChunk];
  alignas(64) double high_ends[kChunk];
  const DoubleDoubleGradientWriter writer(gradient, dx.dtype);
  const auto write = [&](std::int64_t start, std::int64_t n, Chunk&, const PairsAt& x,
                         const PairsAt& dy, const PairsAt& w) HWY_ATTR {
    const ColumnSums sums = columns.from(start);
    for (std::int64_t i = 0; i < n; i += kWidth) {
      const V2 element = x(i);
      const V2 deviation =
          x.low == nullptr ? writer.minus_mean + element.high : writer.minus_mean + element;
      const V2 dy_at = dy(i);
      if (dx.data != nullptr) {
        const Ends ends = writer.bounds(deviation, weighted(dy_at, w, i));
        hn::Store(ends.low, kDoubles, low_ends + i);
        hn::Store(ends.high, kDoubles, high_ends + i);
      }
      if (sums.first == nullptr) continue;
      const ColumnSums at{sums.first + i, sums.stride};
      if (n - i >= kWidth) {
        writer.add_to(at, deviation, dy_at);
      } else {
        writer.add_to_first(n - i, at, deviation, dy_at);
      }
    }
    if (dx.data == nullptr) return;
    write_decided(low_ends, high_ends, n, row_of(dx, 1, start), [&](std::int64_t i) {
      return resolver.resolve(0, part.offset + start + i, x.number(i), dy.number(i));
    });
  };
  for_each_chunk_of_pairs(part, weight, write);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lnorm
HWY_AFTER_NAMESPACE();

#endif
