
#include <unistd.h>

#include <array>
#include <functional>

#include "lnorm/io/byte_source.hpp"
#include "lnorm/io/raw_tensor.hpp"
#include "lnorm/io/zip/npz.hpp"
#include "lnorm/io/zip/zip_archive.hpp"
#include "lnorm/io/zip/zip_writer.hpp"
#include "support/catch.hpp"
#include "support/elements.hpp"
#include "support/files.hpp"
#include "support/sets.hpp"
#include "support/written.hpp"
#include "support/zip.hpp"

namespace {

using namespace support;
using lnorm::ByteSink;
using lnorm::DType;
using lnorm::Shape;
using lnorm::TensorInfo;

using Write = std::function<void(ByteSink&)>;

std::string in_file(const Write& write) { return written(write, "y.npz"); }

// Of no more than a pipe holds.
std::string in_pipe(const Write& write) {
  std::array<int, 2> ends{};
  REQUIRE(::pipe(ends.data()) == 0);
  ByteSink bytes("/dev/fd/" + std::to_string(ends[1]));
  write(bytes);
  bytes.finish();
  bytes.commit();
  std::string content;
  std::array<char, 4096> some{};
  for (ssize_t got = 0; (got = ::read(ends[0], some.data(), some.size())) > 0;) {
    content.append(some.data(), static_cast<std::size_t>(got));
  }
  ::close(ends[0]);
  return content;
}

void add(lnorm::TensorSetSink& set, const TensorInfo& info, std::string_view elements) {
  put(*set.begin(info), std::as_bytes(std::span(elements)));
}
// A tensor that does not come to its end.
void begin(lnorm::TensorSetSink& set, const TensorInfo& info, std::string_view elements) {
  put_some(*set.begin(info), std::as_bytes(std::span(elements)));
}

std::uint64_t number(std::string_view bytes, std::size_t at, std::size_t size) {
  return little_endian(bytes.substr(at), size);
}

struct Found {
  std::string name;
  std::string content;
  std::uint64_t flags;
};

// What an archive without 64-bit numbers holds; checks all that its headers say. [PKWARE, APPNOTE 6.3, 4.3]
std::vector<Found> members_of(std::string_view archive) {
  const std::size_t end = archive.size() - 22;
  REQUIRE(archive.substr(end, 8) == std::string_view("PK\5\6\0\0\0\0", 8));
  CHECK(number(archive, end + 20, 2) == 0);
  const std::uint64_t count = number(archive, end + 8, 2);
  CHECK(number(archive, end + 10, 2) == count);
  std::size_t at = number(archive, end + 16, 4);
  CHECK(number(archive, end + 12, 4) == end - at);
  std::size_t next_local = 0;
  std::vector<Found> members;
  for (std::uint64_t i = 0; i < count; ++i) {
    REQUIRE(archive.substr(at, 4) == "PK\1\2");
    const std::uint64_t flags = number(archive, at + 8, 2);
    CHECK(number(archive, at + 4, 2) == (3 << 8 | 20));
    CHECK(number(archive, at + 6, 2) == 20);
    CHECK(number(archive, at + 10, 2) == 0);           // stored
    CHECK(number(archive, at + 12, 4) == 0x00210000);  // 1980-01-01
    const std::uint64_t crc = number(archive, at + 16, 4);
    const std::uint64_t size = number(archive, at + 20, 4);
    CHECK(number(archive, at + 24, 4) == size);
    const std::uint64_t name_size = number(archive, at + 28, 2);
    CHECK(number(archive, at + 30, 8) == 0);  // nothing beside the name
    CHECK(number(archive, at + 38, 4) == 0600u << 16);
    const std::size_t local = number(archive, at + 42, 4);
    const std::string name(archive.substr(at + 46, name_size));

    CHECK(local == next_local);
    REQUIRE(archive.substr(local, 4) == "PK\3\4");
    CHECK(archive.substr(local + 4, 10) == archive.substr(at + 6, 10));
    const bool follows = (flags & 8) != 0;
    CHECK(number(archive, local + 14, 4) == (follows ? 0 : crc));
    CHECK(number(archive, local + 18, 4) == (follows ? 0 : size));
    CHECK(number(archive, local + 22, 4) == (follows ? 0 : size));
    CHECK(number(archive, local + 26, 2) == name_size);
    CHECK(number(archive, local + 28, 2) == 0);
    CHECK(archive.substr(local + 30, name_size) == name);
    const std::size_t data = local + 30 + name_size;
    members.push_back({name, std::string(archive.substr(data, size)), flags});
    CHECK(crc32(members.back().content) == crc);
    next_local = data + size;
    if (follows) {
      CHECK(archive.substr(next_local, 4) == "PK\7\x8");
      CHECK(number(archive, next_local + 4, 4) == crc);
      CHECK(number(archive, next_local + 8, 4) == size);
      CHECK(number(archive, next_local + 12, 4) == size);
      next_local += 16;
    }
    at += 46 + name_size;
  }
  CHECK(at == end);
  CHECK(next_local == number(archive, end + 16, 4));
  return members;
}

std::string sink_error(const Write& write) {
  const std::string what = error_of([&] { in_file(write); });
  return what == "no error" ? what : what.substr(what.find("y.npz"));
}

}  // namespace

TEST_CASE("an .npz that is written holds .npy members as NumPy has them", "[io]") {
  const std::string floats = bytes_of<float>({1, 2, 3, 4, 5, 6});
  const Write write = [&](ByteSink& bytes) {
    const auto set = lnorm::make_npz_set_sink(bytes);
    add(*set, {"x", DType::float32, {2, 3}}, floats);
    add(*set, {"h.0/\u03b3", DType::int64, {}}, bytes_of<std::int64_t>({7}));
    add(*set, {"none", DType::float64, {0, 5}}, "");
    add(*set, {"b", DType::bfloat16, {2}}, bytes_of<std::uint16_t>({0x3f80, 0x4000}));
    set->finish();
  };
  for (const bool pipe : {false, true}) {
    CAPTURE(pipe);
    const std::string archive = pipe ? in_pipe(write) : in_file(write);
    const auto members = members_of(archive);
    REQUIRE(members.size() == 4);
    const std::uint64_t follows = pipe ? 8 : 0;
    CHECK(members[0].name == "x.npy");
    CHECK(members[0].flags == follows);
    CHECK(members[0].content == npy("<f4", {2, 3}, floats));
    CHECK(members[1].name == "h.0/\u03b3.npy");
    CHECK(members[1].flags == (follows | 0x800));  // UTF-8
    CHECK(members[1].content == npy_of<std::int64_t>({}, {7}));
    CHECK(members[2].content == npy("<f8", {0, 5}, ""));
    CHECK(members[3].content == npy("<V2", {2}, bytes_of<std::uint16_t>({0x3f80, 0x4000})));

    const TempDir at;
    write_file(at / "y.npz", archive);
    const auto set = lnorm::open_npz(
        std::make_shared<const lnorm::ZipArchive>(lnorm::open_file(at / "y.npz")), DType::bfloat16);
    const auto [info, elements] = read_tensor(*set, "b");
    CHECK(info.shape == Shape{2});
    CHECK(text_of(elements) == bytes_of<std::uint16_t>({0x3f80, 0x4000}));
  }
}

TEST_CASE("an .npz of no tensors is an archive of no members", "[io]") {
  const Write write = [](ByteSink& bytes) { lnorm::make_npz_set_sink(bytes)->finish(); };
  CHECK(in_file(write) == zip({}));
  CHECK(in_pipe(write) == zip({}));
}

TEST_CASE("a tensor that is given up is not in the .npz, and its name is free again", "[io]") {
  const auto whole = [](lnorm::TensorSetSink& set) {
    add(set, {"a", DType::float32, {2}}, bytes_of<float>({1, 2}));
    add(set, {"b", DType::float32, {1}}, bytes_of<float>({3}));
    set.finish();
  };
  const std::string expected = in_file([&](ByteSink& bytes) {
    const auto set = lnorm::make_npz_set_sink(bytes);
    whole(*set);
  });
  for (const std::int64_t size : {1, 100'000}) {
    const std::string some(static_cast<std::size_t>(size) * 4, 'x');
    CAPTURE(size);
    CHECK(in_file([&](ByteSink& bytes) {
            const auto set = lnorm::make_npz_set_sink(bytes);
            begin(*set, {"a", DType::float32, {size}}, some);
            add(*set, {"a", DType::float32, {2}}, bytes_of<float>({1, 2}));
            begin(*set, {"b", DType::float32, {2 * size}}, some);
            add(*set, {"b", DType::float32, {1}}, bytes_of<float>({3}));
            begin(*set, {"c", DType::float32, {size}}, some);
            set->finish();
          }) == expected);
  }
}

TEST_CASE("what cannot be the name of a member of an .npz is refused with the name", "[io]") {
  const auto error = [](const std::string& name) {
    return sink_error([&](ByteSink& bytes) {
      const auto set = lnorm::make_npz_set_sink(bytes);
      add(*set, {"a", DType::float32, {}}, bytes_of<float>({1}));
      add(*set, {name, DType::float32, {}}, bytes_of<float>({1}));
    });
  };
  CHECK(error("") == "y.npz: a tensor has no name, expected one for .npz");
  CHECK(error(std::string("a\0b", 3)) ==
        "y.npz: 'a\\x00b.npy' cannot be the name of a member: it has a NUL byte");
  CHECK(error("\xff") == "y.npz: '\\xff.npy' cannot be the name of a member: it is not UTF-8");
  CHECK(error("a") ==
        "y.npz: 'a.npy' cannot be the name of a member: the archive has one of that name");
  CHECK(error(std::string(65531, 'n')) == "no error");
  CHECK(error(std::string(65532, 'n')) ==
        "y.npz: '" + std::string(100, 'n') +
            "...' cannot be the name of a member: it has 65536 bytes, expected at most 65535");
}

TEST_CASE("a zip archive of 65,535 members tells their number in 64 bits, and no smaller one does",
          "[io]") {
  for (const std::size_t count : {65'534u, 65'535u, 65'600u}) {
    CAPTURE(count);
    const std::string archive = in_file([&](ByteSink& bytes) {
      lnorm::ZipWriter writer(bytes);
      for (std::size_t i = 0; i < count; ++i) {
        writer.begin(std::to_string(i), 0);
        writer.end();
      }
      writer.finish();
    });
    const std::size_t end = archive.size() - 22;
    CHECK(number(archive, end + 8, 2) == std::min<std::size_t>(count, 65'535));
    CHECK((archive.substr(end - 20, 4) == "PK\6\7") == (count >= 65'535));
    const TempDir at;
    write_file(at / "y.zip", archive);
    const lnorm::ZipArchive read(lnorm::open_file(at / "y.zip"));
    CHECK(read.size() == count);
    CHECK(read.member_name(count - 1) == std::to_string(count - 1));
  }
}
