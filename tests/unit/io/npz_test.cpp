#include "lnorm/io/zip/npz.hpp"

#include <algorithm>

#include "lnorm/io/byte_source.hpp"
#include "lnorm/io/zip/zip_directory.hpp"
#include "support/commands.hpp"
#include "support/elements.hpp"
#include "support/zip.hpp"

namespace {

using namespace support;
using lnorm::DType;
using lnorm::Shape;

// An archive on disk.
class Archive {
 public:
  explicit Archive(const std::string& bytes) { write_file(path_, bytes); }

  std::unique_ptr<lnorm::TensorSet> set(std::optional<DType> as = {}) const {
    return lnorm::open_npz(std::make_shared<const lnorm::ZipArchive>(lnorm::open_file(path_)), as);
  }
  // The first tensor, or the one of that name.
  std::unique_ptr<lnorm::TensorSource> open(const std::string& name = "") const {
    const auto tensors = set();
    std::size_t index = 0;
    while (!name.empty() && tensors->tensor_name(index) != name) ++index;
    return tensors->open(index);
  }
  std::string read(const std::string& name = "") const {
    return text_of(lnorm::read_all(*open(name)));
  }
  // Without the folder.
  std::string error(const std::string& name = "") const {
    const std::string error = error_of([&] { read(name); }, at_.path().string() + "/");
    CHECK((error == "no error" || error.starts_with("x.npz")));
    return error;
  }

 private:
  TempDir at_;
  std::string path_ = at_ / "x.npz";
};

}  // namespace

TEST_CASE("members are read, stored and deflated, with 64 bits and without, junk before and behind",
          "[io]") {
  const std::string a = npy_of_floats({1, 2, 3});
  const std::string b = npy_of_floats({4});
  for (const bool zip64 : {false, true}) {
    for (const bool deflated : {false, true}) {
      for (const std::string comment :
           {"", "a comment", "PK\x05\x06 in a comment, twice: PK\x05\x06"}) {
        CAPTURE(zip64, deflated, comment);
        const std::string bytes = zip({{"a.npy", a, deflated}, {"b.npy", b, deflated}},
                                      {.zip64 = zip64, .comment = comment});
        const Archive archive(bytes);
        CHECK(archive.read("a") == bytes_of<float>({1, 2, 3}));
        CHECK(archive.open("a")->has_random_access() == !deflated);
        CHECK(archive.read("b") == bytes_of<float>({4}));
        if (!zip64) CHECK(Archive("#!/bin/sh\n" + bytes).read("b") == bytes_of<float>({4}));
      }
    }
  }
}

TEST_CASE("what is read at positions is held against its CRC-32 as well", "[io]") {
  const std::vector<float> elements(100'000, 1.5F);
  const std::string x = npy_of_floats(elements);
  for (const bool damaged : {false, true}) {
    CAPTURE(damaged);
    const auto crc = crc32(x) ^ (damaged ? 1u : 0u);
    const Archive archive(zip({{.name = "x.npy", .bytes = x, .crc = crc}}));
    const auto source = archive.open();
    std::vector<std::byte> read(4 * elements.size());
    const auto piece = std::span(read).subspan(123'456, 4000);
    source->read_at(123'456, piece);
    const std::string expected = bytes_of(elements).substr(123'456, 4000);
    CHECK(std::equal(piece.begin(), piece.end(), std::as_bytes(std::span(expected)).begin()));
    CHECK((error_of([&] { source->finish(); }) == "no error") == !damaged);
    CHECK(archive.error().ends_with("is not what the zip directory says") == damaged);
    // Pieces that are large enough to be summed as they come: apart, side by side, twice, and one over others.
    const auto pieces = archive.open();
    for (const auto& [at, size] :
         std::vector<std::pair<std::int64_t, std::size_t>>{{200'000, 50'000},
                                                           {20'000, 20'000},
                                                           {60'000, 40'000},
                                                           {40'000, 20'000},
                                                           {40'000, 20'000},
                                                           {30'000, 90'000},
                                                           {0, 20'000},
                                                           {300'000, 100'000}}) {
      pieces->read_at(at, std::span(read).first(size));
    }
    CHECK((error_of([&] { pieces->finish(); }) == "no error") == !damaged);
  }
}

TEST_CASE("several sources are open at a time, and outlive their set", "[io]") {
  for (const bool deflated : {false, true}) {
    const Archive archive(zip({{"a.npy", npy_of_floats({1, 2, 3}), deflated},
                               {"b.npy", npy_of_floats({4, 5}), deflated}}));
    auto set = archive.set();
    REQUIRE(set->size() == 2);
    CHECK(set->place(0) < set->place(1));
    const auto a = set->open(0);
    const auto b = set->open(1);
    const auto again = set->open(0);
    set.reset();
    std::vector<std::byte> piece;
    a->read(piece, 4);
    CHECK(lnorm::read_all(*b).size() == 8);
    CHECK(lnorm::read_all(*again).size() == 12);
    a->read(piece, 8);
    CHECK_NOTHROW(a->finish());
  }
}

TEST_CASE("a path in a name is a label", "[io]") {
  const Archive archive(
      zip({{"../../etc/x.npy", npy_of_floats({1})}, {"/b.npy", npy_of_floats({2})}}));
  CHECK(archive.read("../../etc/x") == bytes_of<float>({1}));
  CHECK(archive.read("/b") == bytes_of<float>({2}));
}

TEST_CASE("an archive that is not sound is refused with the reason", "[io]") {
  const std::string x = npy_of_floats({1, 2, 3});
  const auto check_entry = [&](ZipEntry entry, const std::string& what) {
    entry.name = "x.npy";
    if (entry.bytes.empty()) entry.bytes = x;
    const std::string error = Archive(zip({entry})).error();
    CAPTURE(error, what);
    CHECK(error.starts_with("x.npz:x: " + what));
  };
  for (const bool deflated : {false, true}) {
    check_entry({.deflated = deflated, .crc = 1}, "is damaged: the CRC-32");
    check_entry({.bytes = x + "1234", .deflated = deflated}, "data goes on after the tensor");
    check_entry({.bytes = x.substr(0, x.size() - 1), .deflated = deflated}, "the data is cut off");
  }
  for (const std::uint16_t method : std::vector<std::uint16_t>{0, 8}) {
    CHECK(
        contains(Archive(zip({{.name = "x.npy", .bytes = "", .method = method, .crc = 1}})).error(),
                 "x.npz:x: is damaged: the CRC-32"));
  }
  // What inflates to more, or to less, than the directory says.
  check_entry({.bytes = x + std::string(1 << 20, '\0'),
               .deflated = true,
               .size = static_cast<std::uint32_t>(x.size())},
              "");
  check_entry(
      {.bytes = x.substr(0, 130), .deflated = true, .size = static_cast<std::uint32_t>(x.size())},
      "");
  // The key takes twelve bytes.
  check_entry(
      {.bytes = std::string(12, 'k') + x, .flags = 1, .size = static_cast<std::uint32_t>(x.size())},
      "is encrypted");
  check_entry({.method = 12}, "is compressed by bzip2");
  check_entry({.method = 95}, "is compressed by xz");
  check_entry({.method = 77}, "is compressed by method 77");
  CHECK(contains(Archive(zip({{"x.npy", x}, {"x.npy", x}})).error("x"),
                 "two members of the same name"));

  const std::string whole = zip({{"a.npy", x}, {"x.npy", x, true}}, {.comment = "end"});
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const std::string cut = Archive(whole.substr(0, size)).error("x");
    if (!cut.starts_with("x.npz: ")) FAIL(size << ": " << cut);
  }
}

TEST_CASE("no single byte that changes an archive goes unnoticed or does harm", "[io]") {
  const std::string whole = zip({{"x.npy", npy_of_floats({1, 2, 3})}});
  const std::string expected = bytes_of<float>({1, 2, 3});
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::string changed = whole;
    changed[i] = static_cast<char>(changed[i] ^ 0xff);
    const Archive archive(changed);
    try {
      if (archive.read() != expected) FAIL("byte " << i);
    } catch (const lnorm::Error&) {
    }
  }
}

TEST_CASE("a directory that claims millions of members costs nothing", "[io]") {
  std::string bytes = zip({{"x.npy", npy_of_floats({1})}}, {.zip64 = true});
  const std::size_t end64 = bytes.rfind("PK\x06\x06");
  for (const std::size_t at : {end64 + 24, end64 + 32}) bytes.replace(at, 5, "\0\0\0\0\1", 5);
  CHECK(Archive(bytes).error() ==
        "x.npz: the zip directory claims 4294967296 members, but has room for 1");
}

TEST_CASE("members are listed with what they are", "[io]") {
  const Archive archive(zip({{"f.npy", npy("<f4", {2, 3}, std::string(24, '\0'))},
                             {"o.npy", npy("|O", {2}, "")},
                             {"v.npy", npy("<V2", {2}, "1234"), true},
                             {"readme", "no array"}}));
  const auto set = archive.set();
  REQUIRE(set->size() == 4);
  CHECK(set->tensor_name(0) == "f");
  CHECK(set->info(0).shape == Shape{2, 3});
  const lnorm::Member first = set->describe(0);
  CHECK(first.name == "f");
  CHECK(first.dtype == "float32");
  CHECK(first.shape == Shape{2, 3});
  CHECK(first.bytes == 24);
  CHECK(set->describe(1).dtype == "object");
  CHECK(!set->describe(1).shape);
  CHECK(set->describe(2).dtype == "<V2");
  CHECK(contains(set->describe(3).dtype, "not an .npy file"));
  CHECK(archive.set(DType::bfloat16)->describe(2).dtype == "bfloat16");
  CHECK(Archive(zip({})).set()->size() == 0);
}
