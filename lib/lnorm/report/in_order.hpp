#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lnorm/core/in_parallel.hpp"

namespace lnorm {

// The text of many items, in the order in which they come: blocks of them become text, several at once.
template <class Item>
class InOrder {
 public:
  // append: an item's text, called by several threads. write: gets text, in order.
  InOrder(InParallel in_parallel, std::function<void(const Item&, std::string&)> append,
          std::function<void(std::string_view)> write)
      : in_parallel_(std::move(in_parallel)),
        append_(std::move(append)),
        write_(std::move(write)),
        texts_(kBlocks) {}

  void add(Item item) {
    items_.push_back(std::move(item));
    if (items_.size() == kBlocks * kItems) flush();
  }

  // Writes what has not been written. Follows the last item.
  void flush() {
    const std::size_t blocks = (items_.size() + kItems - 1) / kItems;
    in_parallel_(static_cast<std::int64_t>(blocks), [&](std::int64_t block) {
      const std::size_t first = static_cast<std::size_t>(block) * kItems;
      std::string& text = texts_[static_cast<std::size_t>(block)];
      text.clear();
      for (std::size_t i = first; i < std::min(first + kItems, items_.size()); ++i) {
        append_(items_[i], text);
      }
    });
    for (std::size_t block = 0; block < blocks; ++block) write_(texts_[block]);
    items_.clear();
  }

 private:
  static constexpr std::size_t kItems = 256;
  static constexpr std::size_t kBlocks = 64;

  InParallel in_parallel_;
  std::function<void(const Item&, std::string&)> append_;
  std::function<void(std::string_view)> write_;
  std::vector<Item> items_;
  std::vector<std::string> texts_;
};

}  // namespace lnorm
