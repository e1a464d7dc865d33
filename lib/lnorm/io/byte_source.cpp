#include "lnorm/io/byte_source.hpp"

#include <algorithm>
#include <cstring>

#include "lnorm/core/error.hpp"
#include "lnorm/core/raw_bytes.hpp"
#include "lnorm/core/text.hpp"

namespace lnorm {

void ByteSource::fail(std::string_view what, std::string hint) const {
  throw Error(concat(printable(name_), ": ", what), std::move(hint));
}

std::optional<std::int64_t> ByteSource::remaining() const {
  const auto rest = unread();
  if (!rest) return std::nullopt;
  return *rest + static_cast<std::int64_t>(ahead());
}

std::span<const std::byte> ByteSource::peek(std::size_t count) {
  ahead_.erase(ahead_.begin(), ahead_.begin() + static_cast<std::ptrdiff_t>(ahead_start_));
  ahead_start_ = 0;
  while (ahead_.size() < count) {
    const std::size_t have = ahead_.size();
    ahead_.resize(kLookAhead);
    const std::size_t got = read_some(std::span(ahead_).subspan(have));
    ahead_.resize(have + got);
    if (got == 0 || unread() == 0) break;
  }
  return std::span(ahead_).first(std::min(count, ahead_.size()));
}

std::size_t ByteSource::read(std::span<std::byte> to) {
  std::size_t done = std::min(to.size(), ahead());
  if (done > 0) std::memcpy(to.data(), ahead_.data() + ahead_start_, done);
  ahead_start_ += done;
  while (done < to.size()) {
    const std::size_t got = read_some(to.subspan(done));
    if (got == 0) break;
    done += got;
  }
  return done;
}

template <class Bytes>
void ByteSource::read(Bytes& to, std::size_t count) {
  constexpr std::size_t kFirstGrowth = std::size_t{1} << 16;
  std::size_t done = 0;
  while (done < count) {
    // What the caller has reserved is enough as a rule; memory that is touched for nothing takes time.
    const std::size_t buffer =
        to.capacity() > done ? to.capacity() : std::max(kFirstGrowth, 2 * done);
    to.resize(std::min(count, buffer));
    const std::size_t got = read(std::span(to).subspan(done));
    done += got;
    if (done < to.size()) break;
  }
  to.resize(done);
}
template void ByteSource::read(std::vector<std::byte>& to, std::size_t count);
template void ByteSource::read(RawBytes& to, std::size_t count);

std::span<const std::byte> ByteSource::peek_available() {
  if (ahead() == 0) {
    ahead_.resize(std::size_t{1} << 16);
    ahead_.resize(read_some(ahead_));
    ahead_start_ = 0;
  }
  return std::span(ahead_).subspan(ahead_start_);
}

std::size_t ByteSource::read_at(std::int64_t distance, std::span<std::byte> to) const {
  // A small file lies in the look ahead.
  const auto ahead_of_source = std::span(ahead_).subspan(ahead_start_);
  if (distance + std::ssize(to) <= std::ssize(ahead_of_source)) {
    std::ranges::copy(ahead_of_source.subspan(static_cast<std::size_t>(distance), to.size()),
                      to.begin());
    return to.size();
  }
  return read_unread_at(distance - static_cast<std::int64_t>(ahead()), to);
}

std::int64_t ByteSource::skip(std::int64_t count) {
  const std::int64_t from_ahead = std::min(count, static_cast<std::int64_t>(ahead()));
  ahead_start_ += static_cast<std::size_t>(from_ahead);
  return from_ahead < count ? from_ahead + skip_unread(count - from_ahead) : count;
}

std::int64_t ByteSource::skip_unread(std::int64_t count) {
  constexpr std::int64_t kBlock = std::int64_t{1} << 20;
  std::vector<std::byte> passed(static_cast<std::size_t>(std::min(count, kBlock)));
  std::int64_t done = 0;
  while (done < count) {
    const auto wanted = std::min(passed.size(), static_cast<std::size_t>(count - done));
    const std::size_t got = read_some(std::span(passed).first(wanted));
    if (got == 0) break;
    done += static_cast<std::int64_t>(got);
  }
  return done;
}

}  // namespace lnorm
