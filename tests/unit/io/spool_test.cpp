#include "lnorm/io/spool.hpp"

#include <stdlib.h>

#include <initializer_list>
#include <optional>

#include "support/catch.hpp"
#include "support/elements.hpp"
#include "support/files.hpp"

namespace {

using namespace support;
using lnorm::Spool;

// Sets TMPDIR for as long as it lives.
class TemporaryFolder {
 public:
  explicit TemporaryFolder(const std::string& path) {
    if (const char* const before = std::getenv("TMPDIR")) before_ = before;
    ::setenv("TMPDIR", path.c_str(), 1);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    if (before_) {
      ::setenv("TMPDIR", before_->c_str(), 1);
    } else {
      ::unsetenv("TMPDIR");
    }
  }

 private:
  std::optional<std::string> before_;
};

// Where the temporary files lie that are open, though they have no names any more.
std::vector<std::string> open_temporaries() {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;  // the iterator's own
    const std::string path = std::filesystem::read_symlink(entry.path(), gone).string();
    const std::size_t slash = path.rfind('/');
    const bool ours = path.find("/lnorm-", slash) == slash || path.find("/#", slash) == slash;
    if (ours && path.ends_with("(deleted)")) {
      paths.push_back(path.substr(0, slash));
    }
  }
  return paths;
}

constexpr std::size_t kRecord = 12;

// Record number n, no two bytes of which are the same as those of its neighbours.
std::vector<std::byte> record(std::uint32_t n) {
  std::vector<std::byte> bytes(kRecord);
  for (std::uint32_t part = 0; part < kRecord / 4; ++part) {
    const std::uint32_t value = n * 2654435761U + part;
    std::memcpy(bytes.data() + std::size_t{4} * part, &value, sizeof value);
  }
  return bytes;
}

void append(Spool& spool, std::uint32_t from, std::uint32_t to) {
  for (std::uint32_t n = from; n < to; ++n) spool.append(record(n));
}

// Whether the spool holds records 0 to count, in order.
bool holds(const Spool& spool, std::uint32_t count) {
  std::uint32_t seen = 0;
  bool right = true;
  const auto see = [&](std::span<const std::byte> records) {
    for (; records.size() >= kRecord; records = records.subspan(kRecord)) {
      const std::vector<std::byte> expected = record(seen++);
      right = right && std::equal(expected.begin(), expected.end(), records.begin());
    }
    right = right && records.empty();
  };
  spool.replay(0, count, see);
  if (!right || seen != count || spool.size() != count) return false;
  // From the middle, and one alone.
  seen = count / 3;
  spool.replay(seen, count - seen, see);
  if (!right || seen != count) return false;
  if (count == 0) return true;
  seen = count / 2;
  spool.replay(seen, 1, see);
  if (!right || seen != count / 2 + 1) return false;
  // The first of every three.
  std::uint32_t next = 0;
  spool.replay_each(3, [&](std::span<const std::byte> records) {
    for (; !records.empty(); records = records.subspan(kRecord), next += 3) {
      const std::vector<std::byte> expected = record(next);
      right = right && std::equal(expected.begin(), expected.end(), records.begin());
    }
  });
  return right && next == (count + 2) / 3 * 3;
}

}  // namespace

TEST_CASE("a spool replays its records in order, however many fit in memory", "[io]") {
  const TempDir folder;
  const TemporaryFolder temporary(folder.path().string());
  // Less than a record, one, not quite two, several and a rest, all.
  for (const std::size_t memory :
       std::initializer_list<std::size_t>{0, 1, 12, 23, 24, 100, 1 << 20}) {
    for (const std::uint32_t count : {0U, 1U, 2U, 3U, 8U, 9U, 1000U}) {
      CAPTURE(memory, count);
      Spool spool(kRecord, memory);
      append(spool, 0, count);
      CHECK(holds(spool, count));
      CHECK(holds(spool, count));  // again
      CHECK(list_directory(folder.path()).empty());
    }
  }
}

TEST_CASE("a spool takes more records after a replay", "[io]") {
  const TempDir folder;
  const TemporaryFolder temporary(folder.path().string());
  for (const std::size_t memory : {std::size_t{1}, std::size_t{30}, std::size_t{4096}}) {
    CAPTURE(memory);
    Spool spool(kRecord, memory);
    std::uint32_t count = 0;
    for (const std::uint32_t more : {1U, 1U, 5U, 0U, 700U, 2U}) {
      append(spool, count, count + more);
      count += more;
      CHECK(holds(spool, count));
    }
  }
  CHECK(list_directory(folder.path()).empty());
}

TEST_CASE("a spool may be moved, file and all", "[io]") {
  const TempDir folder;
  const TemporaryFolder temporary(folder.path().string());
  Spool first(kRecord, 40);
  append(first, 0, 50);
  Spool second = std::move(first);
  append(second, 50, 60);
  CHECK(holds(second, 60));
}

TEST_CASE("a spool needs no file as long as its records fit in memory", "[io]") {
  const TemporaryFolder temporary("/nonexistent/folder");
  Spool spool(kRecord, 5 * kRecord);
  append(spool, 0, 5);
  CHECK(holds(spool, 5));
}

TEST_CASE("a spool that cannot make its file says where it wanted to", "[io]") {
  const TempDir folder;
  const std::string missing = folder / "missing";
  const TemporaryFolder temporary(missing);
  Spool spool(kRecord, 5 * kRecord);
  append(spool, 0, 5);
  const std::string message = error_of([&] { append(spool, 5, 10); });
  CAPTURE(message);
  CHECK(message.find(missing) != std::string::npos);
  CHECK(message.find("No such file or directory") != std::string::npos);
}

TEST_CASE("a spool's file is in TMPDIR, or else in /tmp, and goes with the spool", "[io]") {
  const TempDir folder;
  const auto folder_of_spool = [](const std::string& asked) {
    const TemporaryFolder temporary(asked);
    Spool spool(kRecord, 1);
    append(spool, 0, 1);
    CHECK(open_temporaries().empty());
    append(spool, 1, 30);
    CHECK(holds(spool, 30));
    const std::vector<std::string> open = open_temporaries();
    CHECK(open.size() == 1);
    return open.empty() ? "" : open.front();
  };
  CHECK(folder_of_spool(folder.path().string()) == folder.path().string());
  CHECK(folder_of_spool("") == "/tmp");
  CHECK(open_temporaries().empty());
}
