#include "lnorm/kernel/features.hpp"

#include <algorithm>
#include <vector>

#include "lnorm/layout/row_source.hpp"
#include "lnorm/pipeline/block_loop.hpp"
#include "lnorm/pipeline/stats.hpp"

namespace lnorm {

namespace {

constexpr std::int64_t kFeaturesOfPass = std::int64_t{1} << 20;
constexpr std::int64_t kFeatureBytes = std::int64_t{1} << 20;

struct FeatureSlot {
  Tile tile{};
  TileBuffer buffer;
  std::vector<FeatureSums> sums;
};

// Sums what the mask leaves, run by run of each row. first: the feature of a row's first element.
void sum_left(const RowMask& mask, std::int64_t first, const RowsIn& block,
              std::vector<FeatureSums>& sums) {
  std::fill(sums.begin(), sums.end(), FeatureSums());
  std::vector<char> kept(sums.size());
  std::vector<FeatureSums> of_run(sums.size());
  for (std::int64_t r = 0; r < block.rows; ++r) {
    mask.fill(block.first_row + r, first, block.row_length, kept.data());
    for (auto begin = kept.begin(); begin != kept.end();) {
      begin = std::find(begin, kept.end(), 1);
      if (begin == kept.end()) break;
      const auto end = std::find(begin, kept.end(), 0);
      const auto at = begin - kept.begin();
      sum_features(part_of(row_of(block, r), at, end - begin), of_run.data());
      for (auto i = at; i < end - kept.begin(); ++i) {
        sums[static_cast<std::size_t>(i)].append(of_run[static_cast<std::size_t>(i - at)]);
      }
      begin = end;
    }
  }
}

// Adds up some features over all rows. mask: null if there is none.
std::vector<FeatureSums> sum_over_rows(RowSource& rows, const Plan& plan, std::int64_t first,
                                       std::int64_t count, const RunOptions& options,
                                       const RowMask* mask) {
  std::vector<FeatureSums> sums(static_cast<std::size_t>(count));
  const auto append = [&](const std::vector<FeatureSums>& next) {
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i].append(next[i]);
  };
  const auto bytes = count * static_cast<std::int64_t>(item_size(plan.in));
  const LoopExtent extent{plan.rows, std::clamp<std::int64_t>(kFeatureBytes / bytes, 1, 4096),
                          count};
  std::vector<FeatureSlot> slots;
  for_each_block(
      extent, Executor(options.threads, extent.blocks()), options, slots,
      [&](const Block& block, FeatureSlot& slot) {
        slot.tile = {block.first, block.count, first, count};
        rows.begin(slot.tile, slot.buffer);
      },
      [&](const Block&, FeatureSlot& slot) {
        rows.read(slot.tile, slot.buffer);
        const TensorInfo& info = rows.info();
        slot.sums.resize(sums.size());
        const RowsIn block{.data = slot.buffer.found,
                           .dtype = info.dtype,
                           .byte_order = info.byte_order,
                           .rows = slot.tile.rows,
                           .row_length = count,
                           .first_row = slot.tile.first_row};
        mask == nullptr ? sum_features(block, slot.sums.data())
                        : sum_left(*mask, first, block, slot.sums);
      },
      [&](const Block&, FeatureSlot& slot) { append(slot.sums); });
  reduce_value(*options.ranks, sums, append);
  return sums;
}

}  // namespace

FeatureStats measure_features(TensorSource& source, const Plan& plan, const RunOptions& wanted,
                              const std::optional<RowMask>& mask) {
  FeatureStats result;
  const TensorInfo& x = source.info();
  result.x = whole_of(x);
  result.slice = x.slice;
  result.axes = x.slice ? x.slice->axes : plan.axes;
  result.rows = plan.rows;
  result.ddof = plan.formula.ddof;
  result.mask = mask.has_value();
  check_same(*wanted.ranks, x);
  IoPath io_path = plan.route.in;
  io_path.needs_random_access = io_path.needs_random_access || plan.row_length > kFeaturesOfPass;
  Participants participants(*wanted.ranks, can_distribute(source, io_path));
  Ranks* const ranks = participants.ranks();
  if (ranks == nullptr) return result;
  const RunOptions options{wanted.threads, wanted.progress, ranks};
  RowSource rows(source, plan.in_view, io_path, for_each_tile(options.threads));
  for (std::int64_t first = 0; first < plan.row_length; first += kFeaturesOfPass) {
    const std::int64_t count = std::min(kFeaturesOfPass, plan.row_length - first);
    const auto sums = sum_over_rows(rows, plan, first, count, options, mask ? &*mask : nullptr);
    result.sums.insert(result.sums.end(), sums.begin(), sums.end());
  }
  rows.finish();
  return result;
}

}  // namespace lnorm
