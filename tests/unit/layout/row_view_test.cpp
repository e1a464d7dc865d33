#include "lnorm/layout/row_view.hpp"

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "support/catch.hpp"
#include "support/pace.hpp"

namespace {

using lnorm::RowView;
using lnorm::Tile;

struct Axis {
  std::int64_t extent;
  std::int64_t stride;
};

// Where element number i of what is numbered along axes lies: by its index, digit by digit.
std::int64_t position_of(const std::vector<Axis>& axes, std::int64_t i) {
  std::int64_t position = 0;
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
    position += i % axis->extent * axis->stride;
    i /= axis->extent;
  }
  return position;
}

std::int64_t count(const std::vector<Axis>& axes) {
  std::int64_t n = 1;
  for (const Axis& axis : axes) n *= axis.extent;
  return n;
}

template <class T>
const std::byte* bytes(const std::vector<T>& values) {
  return reinterpret_cast<const std::byte*>(values.data());
}

// Tiles in pieces, and in blocks of rows.
void check_parts(const RowView& view, const Tile& tile,
                 const std::vector<std::int64_t>& positions) {
  std::vector<std::uint32_t> packed;
  std::vector<std::uint32_t> from_pieces(positions.size());
  std::int64_t runs = 0;
  for (const lnorm::Piece& piece : view.pieces(tile, tile.count, 7)) {
    CHECK(piece.items() <= 7);
    std::vector<std::uint32_t> items;
    for (const lnorm::Run& run : piece.runs()) {
      CHECK(run.count == piece.run_length());
      for (std::int64_t i = 0; i < run.count; ++i) {
        items.push_back(static_cast<std::uint32_t>(run.position + i));
      }
      ++runs;
    }
    piece.packed().gather(sizeof(std::uint32_t), bytes(items),
                          reinterpret_cast<std::byte*>(from_pieces.data()));
    packed.insert(packed.end(), items.begin(), items.end());
  }
  const std::vector<std::uint32_t> expected(positions.begin(), positions.end());
  CHECK(from_pieces == expected);
  CHECK(view.count_runs(tile) >= std::ssize(view.runs(tile)));
  CHECK(view.count_runs(tile) <= runs);

  std::vector<std::uint32_t> back(packed.size());
  for (std::int64_t first = 0; first < tile.rows; first += 3) {
    const Tile block{tile.first_row + first, std::min<std::int64_t>(3, tile.rows - first),
                     tile.first, tile.count};
    std::vector<std::uint32_t> rows(static_cast<std::size_t>(block.rows * block.count));
    view.gather_block(block, sizeof(std::uint32_t), tile, bytes(packed),
                      reinterpret_cast<std::byte*>(rows.data()));
    CHECK(std::equal(rows.begin(), rows.end(), expected.begin() + first * tile.count));
    view.scatter_block(block, sizeof(std::uint32_t), bytes(rows), tile,
                       reinterpret_cast<std::byte*>(back.data()));
  }
  CHECK(back == packed);
}

template <class T>
void check_tile(const RowView& view, const Tile& tile, const std::vector<std::int64_t>& positions) {
  std::vector<T> packed;
  for (const lnorm::Run& run : view.runs(tile)) {
    CHECK(run.count > 0);
    for (std::int64_t i = 0; i < run.count; ++i) packed.push_back(static_cast<T>(run.position + i));
  }
  REQUIRE(packed.size() == positions.size());
  std::vector<T> expected;
  for (const std::int64_t position : positions) expected.push_back(static_cast<T>(position));
  std::vector<T> rows(positions.size());
  view.gather(tile, sizeof(T), bytes(packed), reinterpret_cast<std::byte*>(rows.data()),
              tile.count);
  CHECK(rows == expected);
  std::vector<T> back(positions.size());
  view.scatter(tile, sizeof(T), bytes(rows), tile.count, reinterpret_cast<std::byte*>(back.data()));
  CHECK(back == packed);
}

}  // namespace

TEST_CASE("a tile holds the elements of its rows, whatever the order of the axes", "[row_view]") {
  std::mt19937 random(5);
  const auto below = [&](std::int64_t n) {
    return std::uniform_int_distribution<std::int64_t>(0, n - 1)(random);
  };
  for (int round = 0; round < support::share(400, 4); ++round) {
    std::vector<std::int64_t> shape(1 + static_cast<std::size_t>(below(5)));
    for (std::int64_t& extent : shape) extent = 1 + below(round % 10 == 0 ? 40 : 6);
    const auto order_in_file = round % 2 == 0 ? lnorm::MemoryOrder::c : lnorm::MemoryOrder::fortran;
    const auto strides = lnorm::strides(shape, order_in_file);
    std::vector<std::size_t> order(shape.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::shuffle(order.begin(), order.end(), random);
    const auto split = static_cast<std::size_t>(below(std::ssize(shape) + 1));
    std::vector<Axis> rows;
    std::vector<Axis> elements;
    for (std::size_t i = 0; i < order.size(); ++i) {
      (i < split ? rows : elements).push_back({shape[order[i]], strides[order[i]]});
    }
    const auto middle = order.begin() + static_cast<std::ptrdiff_t>(split);
    const RowView view(shape, order_in_file, {order.begin(), middle}, {middle, order.end()});
    CHECK(view.rows() == count(rows));
    CHECK(view.row_length() == count(elements));
    for (int i = 0; i < 5; ++i) {
      Tile tile{below(count(rows)), 0, below(count(elements)), 0};
      tile.rows = 1 + below(count(rows) - tile.first_row);
      tile.count = 1 + below(count(elements) - tile.first);
      std::vector<std::int64_t> positions;
      for (std::int64_t r = 0; r < tile.rows; ++r) {
        for (std::int64_t e = 0; e < tile.count; ++e) {
          positions.push_back(position_of(rows, tile.first_row + r) +
                              position_of(elements, tile.first + e));
        }
      }
      CAPTURE(round, shape, order, split, tile.first_row, tile.rows, tile.first, tile.count);
      check_tile<std::uint32_t>(view, tile, positions);
      check_parts(view, tile, positions);
      if (i == 0) check_tile<std::uint64_t>(view, tile, positions);
      if (i == 1) check_tile<std::uint16_t>(view, tile, positions);
    }
    // Slabs are blocks that follow each other without gaps.
    const std::int64_t slab = view.slab_rows();
    CHECK(count(rows) % slab == 0);
    for (std::int64_t first = 0; first < count(rows); first += slab) {
      const auto runs = view.runs({first, slab, 0, view.row_length()});
      REQUIRE(runs.size() == 1);
      CHECK(runs[0].position == first * view.row_length());
    }
    bool contiguous = true;
    for (std::int64_t r = 0; r < count(rows); ++r) {
      for (std::int64_t e = 0; e < count(elements); ++e) {
        contiguous = contiguous &&
                     position_of(rows, r) + position_of(elements, e) == r * count(elements) + e;
      }
    }
    CHECK(view.is_contiguous() == contiguous);
  }
}

TEST_CASE("neighbors in the file are one run", "[row_view]") {
  // Two images of 3 channels of 4 x 5, normalized over the channels.
  const RowView view({2, 3, 4, 5}, lnorm::MemoryOrder::c, {0, 2, 3}, {1});
  CHECK(view.slab_rows() == 20);
  CHECK(view.runs({0, 40, 0, 3}).size() == 1);
  CHECK(view.runs({0, 10, 0, 3}).size() == 3);
  CHECK(view.runs({10, 20, 0, 3}).size() ==
        5);  // the third channel's end and the first one's start touch
  CHECK_FALSE(view.is_contiguous());
}
