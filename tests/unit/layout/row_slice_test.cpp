#include "lnorm/layout/row_slice.hpp"

#include <numeric>

#include "lnorm/core/axes.hpp"
#include "lnorm/core/error.hpp"
#include "lnorm/layout/row_view.hpp"
#include "unit/pipeline/memory_tensor.hpp"

namespace {

using namespace support;
using lnorm::Axes;
using lnorm::MemoryOrder;
using lnorm::Shape;
using lnorm::TensorInfo;

// Of a tensor whose elements are their positions in memory: element e of row r is where that lies.
std::vector<std::int32_t> expected(const TensorInfo& x, const Axes& axes, std::int64_t first,
                                   std::int64_t count) {
  const std::vector<std::int64_t> strides = lnorm::strides(x.shape, x.order);
  const Axes kept = lnorm::kept_axes(x.shape, axes);
  const auto position = [&](std::int64_t number, const Axes& along) {
    const Shape index = lnorm::index_of(number, lnorm::extents(x.shape, along));
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < along.size(); ++i) sum += index[i] * strides[along[i]];
    return sum;
  };
  const std::int64_t length = lnorm::element_count(lnorm::extents(x.shape, axes));
  std::vector<std::int32_t> result;
  for (std::int64_t r = first; r < first + count; ++r) {
    for (std::int64_t e = 0; e < length; ++e) {
      result.push_back(static_cast<std::int32_t>(position(r, kept) + position(e, axes)));
    }
  }
  return result;
}

// The elements are 0, 1, 2, ...
std::vector<std::byte> counted(std::size_t count) {
  std::vector<std::int32_t> values(count);
  std::iota(values.begin(), values.end(), 0);
  return as_bytes(values);
}

// Counts how often elements are read.
class CountedSource final : public lnorm::RandomAccessSource {
 public:
  CountedSource(TensorInfo info, int& reads) : RandomAccessSource(std::move(info)), reads_(reads) {}
  void read_at(std::int64_t, std::span<std::byte> to) const override {
    ++reads_;
    std::fill(to.begin(), to.end(), std::byte{0});
  }

 private:
  int& reads_;
};

}  // namespace

TEST_CASE("a slice has the rows that were asked for, of any axes and either memory order",
          "[row_slice]") {
  for (const MemoryOrder order : {MemoryOrder::c, MemoryOrder::fortran}) {
    for (const Axes& axes : {Axes{2}, Axes{1, 2}, Axes{0}, Axes{1}, Axes{0, 2}, Axes{0, 1, 2}}) {
      for (const bool has_random_access : {false, true}) {
        CAPTURE(order, axes, has_random_access);
        const TensorInfo x{"x", lnorm::DType::int32, {3, 4, 5}, std::endian::native, order};
        const auto bytes = counted(60);
        const std::int64_t rows = lnorm::element_count(lnorm::row_shape(x.shape, axes));
        for (std::int64_t first = 0; first < rows; ++first) {
          for (const std::int64_t count : {std::int64_t{1}, rows - first}) {
            auto source = std::make_unique<MemorySource>(x, bytes, has_random_access);
            const MemorySource& used = *source;
            const auto slice = lnorm::rows_of(std::move(source), axes, first, count);
            const auto wanted = as_bytes(expected(x, axes, first, count));
            CHECK(slice->info().name == "x");
            CHECK(slice->info().order == MemoryOrder::c);
            Shape shape = lnorm::extents(x.shape, axes);
            shape.insert(shape.begin(), count);
            CHECK(slice->info().shape == shape);
            CHECK(lnorm::whole_of(slice->info()).shape == x.shape);
            if (has_random_access) {
              CHECK(slice->has_random_access());
              std::vector<std::byte> middle(wanted.size() - 4);
              slice->read_at(4, middle);
              CHECK(std::equal(middle.begin(), middle.end(), wanted.begin() + 4));
              std::vector<std::byte> all(wanted.size());
              slice->read_at(0, all);
              CHECK(all == wanted);
            }
            if (wanted.size() >= 8) {
              std::vector<std::byte> part;
              slice->read(part, 4);
              slice->skip(4);
            } else {
              slice->skip(static_cast<std::int64_t>(wanted.size()));
            }
            std::vector<std::byte> rest;
            slice->read(rest, wanted.size() - std::min<std::size_t>(8, wanted.size()));
            CHECK(std::equal(rest.rbegin(), rest.rend(), wanted.rbegin()));
            slice->finish();
            if (slice->has_random_access() == has_random_access) CHECK(used.finished);
          }
        }
      }
    }
  }
}

TEST_CASE("a slice of rows without elements is empty", "[row_slice]") {
  const TensorInfo x{"x", lnorm::DType::int32, {3, 0}, std::endian::native, MemoryOrder::c};
  const auto slice =
      lnorm::rows_of(std::make_unique<MemorySource>(x, std::vector<std::byte>()), {1}, 2, 1);
  CHECK(slice->info().shape == Shape{1, 0});
  slice->finish();
}

TEST_CASE("a slice of a slice has the rows of the whole tensor", "[row_slice]") {
  const TensorInfo x{"x", lnorm::DType::int32, {3, 4, 5}};
  const auto bytes = counted(60);
  auto some = lnorm::rows_of(std::make_unique<MemorySource>(x, bytes, true), {1}, 4, 7);
  CHECK(lnorm::resolve_axes(some->info(), lnorm::FirstAxis{0}) == Axes{1});
  const auto slice = lnorm::rows_of(std::move(some), {1}, 2, 3);
  const lnorm::RowSlice rows = slice->info().slice.value();
  CHECK(rows.shape == x.shape);
  CHECK(rows.axes == Axes{1});
  CHECK(rows.first == 6);
  CHECK(rows.count == 3);
  CHECK(lnorm::all_rows(rows) == 15);
  const std::vector<std::byte> elements = lnorm::read_all(*slice);
  CHECK(elements == as_bytes(expected(x, {1}, 6, 3)));
  // The elements are their positions.
  for (std::int64_t i = 0; i < 12; ++i) {
    std::int32_t position = 0;
    std::memcpy(&position, elements.data() + 4 * i, 4);
    CHECK(lnorm::position_in_whole(rows, i) == position);
  }
}

TEST_CASE("a slice reads runs by one call each, or several with the little between them",
          "[row_slice]") {
  const auto reads = [](const TensorInfo& x, const Axes& axes) {
    int count = 0;
    const auto slice = lnorm::rows_of(std::make_unique<CountedSource>(x, count), axes, 10, 80);
    std::vector<std::byte> elements(
        static_cast<std::size_t>(lnorm::element_count(slice->info().shape)) * 4);
    slice->read_at(0, elements);
    return count;
  };
  const TensorInfo x{"x", lnorm::DType::int32, {100, 30}};
  CHECK(reads(x, {1}) == 1);
  TensorInfo columns = x;
  columns.order = MemoryOrder::fortran;
  CHECK(reads(columns, {1}) == 1);
  CHECK(reads({"x", lnorm::DType::int32, {30, 100}}, {0}) == 1);
  CHECK(reads({"x", lnorm::DType::int32, {30, 80 + 1024}}, {0}) == 2);  // of 64 KiB
  CHECK(reads({"x", lnorm::DType::int32, {30, 80 + 1025}}, {0}) == 30);
}

TEST_CASE("many rows in short runs are read in longer ones", "[row_slice]") {
  const TensorInfo x{"x", lnorm::DType::int32, {3000, 400}};
  const auto bytes = counted(1'200'000);
  const auto slice = lnorm::rows_of(std::make_unique<MemorySource>(x, bytes, true), {0}, 5, 390);
  CHECK(slice->has_random_access());
  CHECK(slice->info().shape == Shape{390, 3000});
  CHECK(slice->info().slice->first == 5);
  CHECK(lnorm::read_all(*slice) == as_bytes(expected(x, {0}, 5, 390)));
  int reads = 0;
  const auto copy = lnorm::rows_of(std::make_unique<CountedSource>(x, reads), {0}, 5, 390);
  lnorm::read_all(*copy);
  CHECK(reads < 100);
}
