#include "lnorm/io/spool.hpp"

#include <algorithm>

namespace lnorm {

Spool::Spool(std::size_t record_size, std::size_t memory)
    : record_size_(record_size),
      memory_(std::max(record_size, memory / record_size * record_size)) {}

void Spool::append(std::span<const std::byte> records) {
  if (latest_.size() + records.size() > memory_) write_out();
  latest_.reserve(memory_);  // address space, which fills as it is written to
  latest_.insert(latest_.end(), records.begin(), records.end());
}

void Spool::write_out() {
  if (file_.get() < 0) file_ = os::create_nameless(file_name_);
  os::write_all(file_, latest_, file_name_);
  latest_.clear();
}

void Spool::replay(const std::function<void(std::span<const std::byte>)>& see) const {
  const auto see_all = [&](std::span<const std::byte> records) {
    for (; !records.empty(); records = records.subspan(record_size_)) {
      see(records.first(record_size_));
    }
  };
  if (file_.get() >= 0) {
    // The file holds whole records.
    constexpr std::size_t kBlock = std::size_t{256} << 10;
    std::vector<std::byte> block(std::max<std::size_t>(1, kBlock / record_size_) * record_size_);
    std::int64_t position = 0;
    while (const std::size_t got = os::read_at(file_, block, position, file_name_)) {
      see_all(std::span(block).first(got));
      position += static_cast<std::int64_t>(got);
    }
  }
  see_all(latest_);
}

}  // namespace lnorm
