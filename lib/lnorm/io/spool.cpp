#include "lnorm/io/spool.hpp"

#include <algorithm>

#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"

namespace lnorm {

namespace {

constexpr std::size_t kAtOnce = std::size_t{256} << 10;  // bytes that are written, or read

}  // namespace

Spool::Spool(std::size_t record_size, std::size_t memory)
    : record_size_(record_size),
      memory_(std::max(record_size, memory / record_size * record_size)) {}

void Spool::append(std::span<const std::byte> records) {
  held_.reserve(memory_);  // address space, which fills as it is written to
  const auto here = records.first(std::min(records.size(), memory_ - held_.size()));
  held_.insert(held_.end(), here.begin(), here.end());
  records = records.subspan(here.size());
  latest_.insert(latest_.end(), records.begin(), records.end());
  if (latest_.size() < std::min(kAtOnce, memory_)) return;
  if (file_.get() < 0) file_ = os::create_nameless(file_name_);
  os::write_all(file_, latest_, file_name_);
  in_file_ += std::ssize(latest_);
  latest_.clear();
}

std::span<const std::byte> Spool::read(std::int64_t offset, std::size_t wanted,
                                       std::vector<std::byte>& buffer) const {
  const auto part_of = [&](std::span<const std::byte> all) {
    const auto rest = all.subspan(static_cast<std::size_t>(offset));
    return rest.first(std::min(wanted, rest.size()));
  };
  if (offset < std::ssize(held_)) return part_of(held_);
  offset -= std::ssize(held_);
  if (offset < in_file_) {
    buffer.resize(std::min(wanted, static_cast<std::size_t>(in_file_ - offset)));
    return std::span(buffer).first(os::read_at(file_, buffer, offset, file_name_));
  }
  offset -= in_file_;
  return part_of(latest_);
}

void Spool::replay(std::int64_t first, std::int64_t count,
                   const std::function<void(std::span<const std::byte>)>& see) const {
  const std::size_t at_once = std::max<std::size_t>(1, kAtOnce / record_size_) * record_size_;
  const auto size = static_cast<std::int64_t>(record_size_);
  std::int64_t offset = first * size;
  const std::int64_t end = offset + count * size;
  std::vector<std::byte> buffer;
  while (offset < end) {
    const auto wanted = std::min(at_once, static_cast<std::size_t>(end - offset));
    const auto records = read(offset, wanted, buffer);
    if (records.empty()) throw Error(concat(file_name_, ": the temporary file has become shorter"));
    see(records);
    offset += static_cast<std::int64_t>(records.size());
  }
}

void Spool::replay_each(std::int64_t step,
                        const std::function<void(std::span<const std::byte>)>& see) const {
  if (step == 1) return replay(0, size(), see);
  std::vector<std::byte> some;
  for (std::int64_t i = 0; i < size(); i += step) {
    replay(i, 1, [&](std::span<const std::byte> record) {
      some.insert(some.end(), record.begin(), record.end());
    });
    if (some.size() < kAtOnce && i + step < size()) continue;
    see(some);
    some.clear();
  }
}

}  // namespace lnorm
