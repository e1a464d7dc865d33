#include "lnorm/io/detect_format.hpp"
#include "support/catch.hpp"
#include "support/memory_bytes.hpp"

namespace {

struct Refusal {
  std::string what = "no error";
  std::string hint = {};
};

Refusal refusal(const std::string& bytes, const std::string& name = "x") {
  support::MemoryBytes source(name, bytes);
  try {
    detect_format(source);
    return {};
  } catch (const lnorm::Error& error) {
    return {error.what(), error.hint()};
  }
}

// A record of TensorFlow of 16 bytes.
const std::string kTFRecord("\x10\0\0\0\0\0\0\0\x95\xfb\xfe\x18", 12);

}  // namespace

TEST_CASE("a file of another format is named, with the Python that makes an .npy of it", "[io]") {
  struct Case {
    std::string bytes;
    std::string what;
    std::string python;  // a part of it
  };
  for (const Case& c : std::vector<Case>{
           {"\x89HDF\r\n\x1a\n", "an HDF5 file", "h5py.File("},
           {"MATLAB 5.0 MAT-file, Platform", "a MATLAB 5 file", "scipy.io.loadmat("},
           {"MATLAB 7.3 MAT-file, Platform", "a MATLAB 7.3 file", "[()].T)"},
           {"PAR1\x15\x04", "a Parquet file", "pandas.read_parquet("},
           {std::string("ARROW1\0\0", 8), "an Arrow file", "pyarrow.ipc.open_file("},
           {"FEA1", "a Feather file", "pandas.read_feather("},
           {kTFRecord, "a TFRecord file", "tensorflow.data.TFRecordDataset("},
       }) {
    CAPTURE(c.what);
    const Refusal found = refusal(c.bytes + std::string(64, '\0'));
    CHECK(found.what == "x: is " + c.what);
    CHECK(found.hint.starts_with("in Python: numpy.save('x.npy', "));
    CHECK(found.hint.find("('x')") != std::string::npos);
    CHECK(found.hint.find(c.python) != std::string::npos);
    CHECK(found.hint.find('\n') == std::string::npos);
  }
  for (const std::string start : {"\x1f\x8b", "version https://git-lfs", "<html"}) {
    CHECK(refusal(start).hint == "");
  }
}

TEST_CASE("a TFRecord is told by the sum of its length", "[io]") {
  // Of 130 bytes, whose sum begins as the header of a .safetensors does.
  const std::string brace("\x82\0\0\0\0\0\0\0{?\xc3\x5f", 12);
  CHECK(refusal(brace).what == "x: is a TFRecord file");
  support::MemoryBytes safetensors("x", brace.substr(0, 9) + "\"a\"");
  CHECK(lnorm::detect_format(safetensors) == lnorm::Format::safetensors);
  std::string damaged = kTFRecord;
  damaged.back() ^= 1;
  CHECK(refusal(damaged).what.find("TFRecord") == std::string::npos);
  CHECK(refusal(kTFRecord.substr(0, 11)).what.find("TFRecord") == std::string::npos);
}

TEST_CASE("bytes of no format are elements alone, it seems", "[io]") {
  const std::string floats("\0\0\x80\x3f\0\0\x40\x40", 8);
  const std::string integers("\1\0\2\0\3\0\4\0", 8);
  const std::string bracket("[\0\0\x3f\0\0\x40\x40", 8);
  const auto seems_raw = [](const std::string& name, const std::string& bytes) {
    support::MemoryBytes source(name, bytes);
    try {
      detect_format(source);
    } catch (const lnorm::ElementsAlone&) {
      return true;
    } catch (const lnorm::Error&) {
    }
    return false;
  };
  CHECK(seems_raw("x", floats));
  CHECK_FALSE(seems_raw("x", integers));  // as UTF-16 begins
  CHECK_FALSE(seems_raw("x", "hello world"));
  for (const std::string name : {"x.bin", "x.raw", "x.DAT"}) {
    CAPTURE(name);
    for (const std::string& bytes : {floats, integers, bracket, std::string("hello")}) {
      CHECK(seems_raw(name, bytes));
    }
    CHECK_FALSE(seems_raw(name, "[1, 2]"));
    CHECK_FALSE(seems_raw(name, std::string("PK\3\4", 4)));
  }
}
