#include "lnorm/io/zip/npz.hpp"

#include "lnorm/core/error.hpp"
#include "lnorm/io/byte_source.hpp"
#include "lnorm/io/zip/zip_directory.hpp"
#include "support/catch.hpp"
#include "support/files.hpp"
#include "support/sets.hpp"
#include "support/zip.hpp"

namespace {

using namespace support;
using lnorm::DType;
using lnorm::Shape;

std::string floats(const std::vector<float>& elements) {
  return npy("<f4", {static_cast<std::int64_t>(elements.size())}, bytes_of(elements));
}

// An archive on disk.
class Archive {
 public:
  explicit Archive(const std::string& bytes) { write_file(path_, bytes); }

  std::unique_ptr<lnorm::ByteSource> bytes() const { return lnorm::open_file(path_); }
  std::string read(const std::optional<std::string>& member) const {
    const auto elements = support::read_tensor(*lnorm::open_npz(bytes(), {}), member).elements;
    return {reinterpret_cast<const char*>(elements.data()), elements.size()};
  }
  // Without the folder.
  std::string error(const std::optional<std::string>& member) const {
    try {
      read(member);
    } catch (const lnorm::Error& error) {
      const std::string what = error.what();
      CHECK(what.starts_with(at_.path().string() + "/x.npz"));
      return what.substr(at_.path().string().size() + 1);
    }
    return "no error";
  }

 private:
  TempDir at_;
  std::string path_ = at_ / "x.npz";
};

}  // namespace

TEST_CASE("members are read, stored and deflated, with 64 bits and without, junk before and behind",
          "[io]") {
  const std::string a = floats({1, 2, 3});
  const std::string b = floats({4});
  for (const bool zip64 : {false, true}) {
    for (const bool deflated : {false, true}) {
      for (const std::string comment :
           {"", "a comment", "PK\x05\x06 in a comment, twice: PK\x05\x06"}) {
        CAPTURE(zip64, deflated, comment);
        const std::string bytes = zip({{"a.npy", a, deflated}, {"b.npy", b, deflated}},
                                      {.zip64 = zip64, .comment = comment});
        const Archive archive(bytes);
        CHECK(archive.read("a") == bytes_of<float>({1, 2, 3}));
        CHECK(archive.read("a.npy") == bytes_of<float>({1, 2, 3}));
        CHECK(archive.read("b") == bytes_of<float>({4}));
        if (!zip64) CHECK(Archive("#!/bin/sh\n" + bytes).read("b") == bytes_of<float>({4}));
      }
    }
  }
}

TEST_CASE("one member needs no name, and several do", "[io]") {
  CHECK(Archive(zip({{"only.npy", floats({5})}})).read({}) == bytes_of<float>({5}));
  const Archive two(zip({{"a.npy", floats({1})}, {"b\n.npy", floats({2})}}));
  CHECK(two.error({}) == "x.npz: found 2 tensors, a, b\\n, expected one");
  CHECK(two.error("c") == "x.npz: there is no member 'c', only a, b\\n");
  CHECK(two.read("b\n") == bytes_of<float>({2}));
  CHECK(Archive(zip({})).error({}) == "x.npz: found 0 tensors, nothing, expected one");
  std::vector<ZipEntry> many;
  for (int i = 0; i < 1000; ++i) many.push_back({"member" + std::to_string(i) + ".npy", ""});
  const std::string listed = Archive(zip(many)).error({});
  CHECK(listed.find("1000 tensors, member0, ") != std::string::npos);
  CHECK(listed.find(", ..., expected one") != std::string::npos);
  CHECK(listed.size() < 400);
}

TEST_CASE("a path in a name is a label", "[io]") {
  const Archive archive(zip({{"../../etc/x.npy", floats({1})}, {"/b.npy", floats({2})}}));
  CHECK(archive.read("../../etc/x") == bytes_of<float>({1}));
  CHECK(archive.read("/b") == bytes_of<float>({2}));
}

TEST_CASE("an archive that is not sound is refused with the reason", "[io]") {
  const std::string x = floats({1, 2, 3});
  const auto error = [&](ZipEntry entry) {
    entry.name = "x.npy";
    if (entry.bytes.empty()) entry.bytes = x;
    return Archive(zip({entry})).error({});
  };
  const auto contains = [](const std::string& text, const std::string& part) {
    CAPTURE(text, part);
    CHECK(text.find(part) != std::string::npos);
  };
  for (const bool deflated : {false, true}) {
    contains(error({.name = "", .bytes = "", .deflated = deflated, .crc = 1}),
             "x.npz:x: is damaged: the CRC-32");
    contains(error({.name = "", .bytes = x + "1234", .deflated = deflated}),
             "x.npz:x: data goes on after the tensor");
    contains(error({.name = "", .bytes = x.substr(0, x.size() - 1), .deflated = deflated}),
             "x.npz:x: the data is cut off");
  }
  for (const std::uint16_t method : std::vector<std::uint16_t>{0, 8}) {
    contains(Archive(zip({{.name = "x.npy", .bytes = "", .method = method, .crc = 1}})).error({}),
             "x.npz:x: is damaged: the CRC-32");
  }
  // What inflates to more, or to less, than the directory says.
  contains(error({.name = "",
                  .bytes = x + std::string(1 << 20, '\0'),
                  .deflated = true,
                  .size = static_cast<std::uint32_t>(x.size())}),
           "x.npz:x: ");
  contains(error({.name = "",
                  .bytes = x.substr(0, 130),
                  .deflated = true,
                  .size = static_cast<std::uint32_t>(x.size())}),
           "x.npz:x: ");
  // The key takes twelve bytes, which newer versions of libzip count.
  contains(error({.name = "",
                  .bytes = std::string(12, 'k') + x,
                  .flags = 1,
                  .size = static_cast<std::uint32_t>(x.size())}),
           "x.npz:x: is encrypted");
  contains(error({.name = "", .bytes = "", .method = 12}), "x.npz:x: is compressed by bzip2");
  contains(error({.name = "", .bytes = "", .method = 95}), "x.npz:x: is compressed by xz");
  contains(error({.name = "", .bytes = "", .method = 77}), "x.npz:x: is compressed by method 77");
  contains(Archive(zip({{"x.npy", x}, {"x.npy", x}})).error("x"), "two members of the same name");

  const std::string whole = zip({{"a.npy", x}, {"x.npy", x, true}}, {.comment = "end"});
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const std::string cut = Archive(whole.substr(0, size)).error("x");
    if (!cut.starts_with("x.npz: ")) FAIL(size << ": " << cut);
  }
}

TEST_CASE("no single byte that changes an archive goes unnoticed or does harm", "[io]") {
  const std::string whole = zip({{"x.npy", floats({1, 2, 3})}});
  const std::string expected = bytes_of<float>({1, 2, 3});
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::string changed = whole;
    changed[i] = static_cast<char>(changed[i] ^ 0xff);
    const Archive archive(changed);
    try {
      if (archive.read({}) != expected) FAIL("byte " << i);
    } catch (const lnorm::Error&) {
    }
  }
}

TEST_CASE("a directory that claims millions of members costs nothing", "[io]") {
  std::string bytes = zip({{"x.npy", floats({1})}}, {.zip64 = true});
  const std::size_t end64 = bytes.rfind("PK\x06\x06");
  for (const std::size_t at : {end64 + 24, end64 + 32}) bytes.replace(at, 5, "\0\0\0\0\1", 5);
  CHECK(Archive(bytes).error({}) ==
        "x.npz: the zip directory claims 4294967296 members, but has room for 1");
}

TEST_CASE("members are listed with what they are", "[io]") {
  const Archive archive(zip({{"f.npy", npy("<f4", {2, 3}, std::string(24, '\0'))},
                             {"o.npy", npy("|O", {2}, "")},
                             {"v.npy", npy("<V2", {2}, "1234"), true},
                             {"readme", "no array"}}));
  const auto members = support::list(*lnorm::open_npz(archive.bytes(), {}));
  REQUIRE(members.size() == 4);
  CHECK(members.at(0).name == "f");
  CHECK(members.at(0).dtype == "float32");
  CHECK(members.at(0).shape == Shape{2, 3});
  CHECK(members.at(1).dtype == "object");
  CHECK(!members.at(1).shape);
  CHECK(members.at(2).dtype == "<V2");
  CHECK(members.at(3).dtype.find("not an .npy file") != std::string::npos);
  CHECK(support::list(*lnorm::open_npz(archive.bytes(), DType::bfloat16)).at(2).dtype ==
        "bfloat16");
}
