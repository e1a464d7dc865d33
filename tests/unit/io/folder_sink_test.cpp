#include "lnorm/io/folder_sink.hpp"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lnorm/core/error.hpp"
#include "lnorm/io/npy/npy.hpp"
#include "lnorm/io/os.hpp"
#include "support/catch.hpp"
#include "support/elements.hpp"
#include "support/files.hpp"

namespace {

using namespace support;
namespace fs = std::filesystem;
using lnorm::DType;
using lnorm::FolderSink;
using Names = std::vector<std::string>;

void put_file(FolderSink& folder, const std::string& name, std::string_view content) {
  folder.begin(name, ".txt").write(content);
  folder.keep();
}

void put_in_place(FolderSink& folder) {
  folder.finish();
  folder.commit();
}

template <class Act>
std::string folder_error(const TempDir& at, Act act) {
  return error_of(act, at.path().string() + "/");
}

mode_t mode_of(const std::string& path) { return lnorm::os::status(path)->st_mode & 0777; }

}  // namespace

TEST_CASE("a folder appears with all its files, and nothing is there before", "[io]") {
  const TempDir at;
  for (const std::string slash : {"", "/", "//"}) {
    fs::remove_all(at / "y");
    {
      FolderSink folder(at / ("y" + slash));
      put_file(folder, "a", "1");
      put_file(folder, "sub/folder/b", std::string(200'000, 'b'));
      folder.finish();
      CHECK(!at.has("y"));
      folder.commit();
    }
    CHECK(at.files() == Names{"y"});
    CHECK(list_directory(at / "y") == Names{"a.txt", "sub"});
    CHECK(at.read("y/a.txt") == "1");
    CHECK(at.read("y/sub/folder/b.txt") == std::string(200'000, 'b'));
    const mode_t mask = ::umask(0);
    ::umask(mask);
    CHECK(mode_of(at / "y") == (0777 & ~mask));
    CHECK(mode_of(at / "y/a.txt") == (0666 & ~mask));
  }
}

TEST_CASE("a folder that two make at once has the files of both", "[io]") {
  const TempDir at;
  FolderSink one(at / "y");
  FolderSink other(at / "y");
  put_file(one, "a", "1");
  put_file(other, "b", "2");
  put_in_place(one);
  put_in_place(other);
  CHECK(list_directory(at / "y") == Names{"a.txt", "b.txt"});
  CHECK(!lnorm::os::make_folder(at / "y"));
  CHECK_THROWS_WITH(lnorm::os::make_folder(at / "y/a.txt"),
                    at / "y/a.txt" + std::string(": File exists"));
}

TEST_CASE("files of a folder are replaced when all are done, and others stay", "[io]") {
  const TempDir at;
  fs::create_directory(at / "y");
  at.write("y/a.txt", "old");
  at.write("y/other.txt", "other");
  REQUIRE(::chmod((at / "y/a.txt").c_str(), 0640) == 0);
  {
    FolderSink folder(at / "y");
    put_file(folder, "a", "new");
    put_file(folder, "b", "b");
    CHECK(at.read("y/a.txt") == "old");
    CHECK(!at.has("y/b.txt"));
    put_in_place(folder);
  }
  CHECK(list_directory(at / "y") == Names{"a.txt", "b.txt", "other.txt"});
  CHECK(at.read("y/a.txt") == "new");
  CHECK(mode_of(at / "y/a.txt") == 0640);
  CHECK(at.files() == Names{"y"});
}

TEST_CASE("what is not committed leaves nothing behind", "[io]") {
  const TempDir at;
  for (const bool is_there : {false, true}) {
    if (is_there) fs::create_directory(at / "y");
    const auto left = [&] { return is_there ? list_directory(at / "y") : at.files(); };
    {
      FolderSink folder(at / "y");
      put_file(folder, "a", "1");
      folder.begin("b", ".txt").write("2");
    }
    CHECK(left().empty());
    FolderSink folder(at / "y");
    put_file(folder, "a", "1");
    put_file(folder, "c/d", "1");
    folder.begin("b", ".txt").write("2");
    CHECK(left().size() == 1);
    lnorm::os::remove_temporaries();  // as where a signal ends the program
    CHECK(left().empty());
  }
}

TEST_CASE("a file that is given up is not in the folder, and its name is free again", "[io]") {
  const TempDir at;
  FolderSink folder(at / "y");
  folder.begin("a", ".txt").write("not this");
  put_file(folder, "b", "b");
  folder.begin("c/d", ".txt").write("nor this");
  put_file(folder, "a", "a");
  folder.begin("e", ".txt");
  put_in_place(folder);
  CHECK(list_directory(at / "y") == Names{"a.txt", "b.txt"});
  CHECK(at.read("y/a.txt") == "a");
}

TEST_CASE("what cannot be the name of a file in a folder is refused with the name", "[io]") {
  const TempDir at;
  FolderSink folder(at / "y");
  put_file(folder, "a", "1");
  put_file(folder, "b/c", "1");
  const auto error = [&](const std::string& name) {
    const std::string what = folder_error(at, [&] { put_file(folder, name, "2"); });
    const std::string who = "y: '" + name + "' cannot be the name of a file: ";
    return what.starts_with(who) ? what.substr(who.size()) : what;
  };
  CHECK(error("") == "it is empty");
  CHECK(error("/x") == "it is absolute");
  CHECK(error("..") == "it has a part '..'");
  CHECK(error(".") == "it has a part '.'");
  CHECK(error("x/../../y") == "it has a part '..'");
  CHECK(error("x//y") == "it has an empty part");
  CHECK(error("x/") == "it has an empty part");
  CHECK(error(std::string("x\0y", 3)) ==
        "y: 'x\\x00y' cannot be the name of a file: it has a NUL byte");
  CHECK(error(std::string(251, 'n')) == "no error");
  CHECK(error(std::string(252, 'n')).ends_with("it has a part of 252 bytes, expected at most 251"));
  CHECK(error(std::string(255, 'n') + "/x") == "no error");
  CHECK(error(std::string(256, 'n') + "/x").ends_with("a part of 256 bytes, expected at most 255"));
  std::string deep;
  for (int i = 0; i < 2500; ++i) deep += "d/";
  CHECK(error(deep + "x").ends_with("the path would be too long"));
  CHECK(error("a") == "the folder has one of that name");
  CHECK(error("a.txt/x") == "a.txt is a file");
  put_file(folder, "d.txt/x", "1");
  CHECK(error("d") == "d.txt is there twice");
  CHECK(folder_error(at, [&] { folder.begin("a", ".other"); }).ends_with("has one of that name"));
  CHECK(error("...") == "a part of it begins with a dot, and would be passed over");
}

TEST_CASE("what cannot be replaced is seen before anything is", "[io]") {
  const TempDir at;
  fs::create_directories(at / "y/a.txt");
  at.write("y/file", "");
  REQUIRE(::mkfifo((at / "y/fifo.txt").c_str(), 0600) == 0);
  FolderSink folder(at / "y");
  const auto error = [&](const std::string& name) {
    return folder_error(at, [&] { put_file(folder, name, "2"); });
  };
  CHECK(error("a") == "y/a.txt: is a directory, expected a file to write");
  CHECK(error("file/x") == "y/file: is a file, expected a folder");
  CHECK(error("fifo") == "y/fifo.txt: is no regular file, which cannot be replaced");
  CHECK(folder_error(at, [&] { FolderSink(at / "y/file"); }) ==
        "y/file: is a file, expected a folder");
  CHECK(folder_error(at, [&] { FolderSink(at / "none/x/"); }) ==
        "none/x: No such file or directory");
  CHECK_THROWS_AS(FolderSink(at / "none/x"), lnorm::SystemError);
}

TEST_CASE("ten thousand files need no more descriptors than one", "[io]") {
  const TempDir at;
  struct rlimit before {};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  const struct rlimit few { .rlim_cur = 64, .rlim_max = before.rlim_max };
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &few) == 0);
  {
    FolderSink folder(at / "y");
    for (int i = 0; i < 10'000; ++i) put_file(folder, std::to_string(i), std::to_string(i));
    put_in_place(folder);
  }
  ::setrlimit(RLIMIT_NOFILE, &before);
  CHECK(list_directory(at / "y").size() == 10'000);
  CHECK(at.read("y/9999.txt") == "9999");
}

TEST_CASE("tensors become files of a folder, each in the format of its own", "[io]") {
  const TempDir at;
  FolderSink folder(at / "y");
  const auto set = lnorm::make_folder_set_sink(
      folder, [](const lnorm::TensorInfo& info) { return info.shape.empty() ? ".0" : ".npy"; },
      lnorm::make_npy_sink);
  const auto add = [&](const lnorm::TensorInfo& info, const std::string& elements) {
    auto sink = set->begin(info);
    CHECK(sink->has_random_access());
    sink->write_at(0, std::as_bytes(std::span(elements)));
    return sink;
  };
  add({"h.0/x", DType::float32, {2}}, bytes_of<float>({1, 2}))->finish();
  add({"gone", DType::float32, {1}}, bytes_of<float>({1}));
  add({"s", DType::float32, {}}, bytes_of<float>({3}))->finish();
  set->finish();
  put_in_place(folder);
  CHECK(list_directory(at / "y") == Names{"h.0", "s.0"});
  CHECK(at.read("y/h.0/x.npy") == npy_of<float>({2}, {1, 2}));
  CHECK(at.read("y/s.0") == npy_of<float>({}, {3}));
}
