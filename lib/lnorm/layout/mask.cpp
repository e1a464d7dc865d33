#include "lnorm/layout/mask.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "lnorm/core/axes.hpp"
#include "lnorm/core/chunk.hpp"
#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"

namespace lnorm {

Mask::Mask(TensorSource& source) : info_(source.info()) {
  const std::int64_t count = element_count(info_.shape);
  bits_.reserve(static_cast<std::size_t>(count));
  const auto chunk = std::make_unique<Chunk>();
  std::vector<std::byte> bytes;
  for (std::int64_t start = 0; start < count; start += kChunk) {
    const std::int64_t size = std::min(kChunk, count - start);
    source.read(bytes, static_cast<std::size_t>(size) * item_size(info_.dtype));
    load(bytes.data(), info_.dtype, info_.byte_order, size, *chunk);
    for (std::int64_t i = 0; i < size; ++i) bits_.push_back(chunk->high[i] != 0);
  }
}

void check_mask(const TensorInfo& mask, const TensorInfo& x) {
  const Shape& from = mask.shape;
  const Shape to = file_shape(whole_of(x));
  const auto fits = [](std::int64_t extent, std::int64_t into) {
    return extent == 1 || extent == into;
  };
  if (from.size() <= to.size() && std::equal(from.rbegin(), from.rend(), to.rbegin(), fits)) return;
  throw Error(concat(printable(mask.name), " has shape ", to_string(from),
                     ", which does not broadcast to ", to_string(to), ", that of ",
                     printable(x.name)));
}

std::vector<char> kept_of(const RowMask* mask, std::int64_t row, std::int64_t row_length) {
  std::vector<char> kept;
  if (mask == nullptr) return kept;
  kept.resize(static_cast<std::size_t>(row_length));
  mask->fill(row, 0, row_length, kept.data());
  return kept;
}

RowMask::RowMask(std::shared_ptr<const Mask> mask, const TensorInfo& x, const Axes& axes)
    : mask_(std::move(mask)), first_row_(x.slice ? x.slice->first : 0) {
  check_mask(mask_->info(), x);
  const TensorInfo whole = whole_of(x);
  Axes normalized = x.slice ? x.slice->axes : axes;
  // Those of a slice, in the order of its rows' elements.
  for (std::size_t i = 0; x.slice && axes.size() == normalized.size() && i < axes.size(); ++i) {
    normalized[i] = x.slice->axes[axes[i] - 1];
  }
  Shape strides(file_shape(whole).size());
  const Shape& own = mask_->info().shape;
  std::int64_t stride = 1;
  for (std::size_t i = 0; i < own.size(); ++i) {
    const std::int64_t extent = own[own.size() - 1 - i];
    if (extent != 1) strides[strides.size() - 1 - i] = stride;
    stride *= extent;
  }
  if (whole.split) {
    const auto channels = strides.begin() + static_cast<std::ptrdiff_t>(*whole.split);
    strides.insert(channels, *channels * whole.shape[*whole.split + 1]);
  }
  const auto along = [&](const Axes& some) {
    return Along{extents(whole.shape, some), extents(strides, some)};
  };
  rows_ = along(kept_axes(whole.shape, normalized));
  elements_ = along(normalized);
}

std::int64_t RowMask::fill(std::int64_t row, std::int64_t first, std::int64_t count,
                           char* kept) const {
  if (count == 0) return 0;
  std::int64_t position = 0;
  const auto begin_at = [&](std::int64_t number, const Along& along) {
    Shape index = index_of(number, along.extents);
    for (std::size_t axis = 0; axis < index.size(); ++axis) {
      position += index[axis] * along.strides[axis];
    }
    return index;
  };
  begin_at(first_row_ + row, rows_);
  Shape index = begin_at(first, elements_);
  std::int64_t left = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    kept[i] = static_cast<char>(mask_->bit(position));
    left += kept[i];
    for (std::size_t axis = index.size(); axis-- > 0;) {
      position += elements_.strides[axis];
      if (++index[axis] < elements_.extents[axis]) break;
      position -= elements_.strides[axis] * elements_.extents[axis];
      index[axis] = 0;
    }
  }
  return left;
}

}  // namespace lnorm
