#include "lnorm/io/unsupported_format.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

#include "lnorm/core/byte_order.hpp"
#include "lnorm/core/text.hpp"

namespace lnorm {

namespace {

struct Signature {
  std::string_view bytes;
  std::string_view what;
  std::string_view python;  // the line of Python that makes an .npy of it
};

// What people feed by mistake.
constexpr std::array kSignatures{
    Signature{"\x1f\x8b", "compressed with gzip; decompress it first (gunzip -c)", ""},
    Signature{"\x28\xb5\x2f\xfd", "compressed with zstd; decompress it first (zstd -dc)", ""},
    Signature{"\xfd"
              "7zXZ",
              "compressed with xz; decompress it first (xz -dc)", ""},
    Signature{"BZh", "compressed with bzip2; decompress it first (bzip2 -dc)", ""},
    Signature{"\x89HDF\r\n\x1a\n", "an HDF5 file",
              "numpy.save('x.npy', h5py.File('x.h5')['NAME'][()])"},
    Signature{"GGUF", "a GGUF file",
              "numpy.save('x.npy', next(t.data for t in gguf.GGUFReader('x.gguf').tensors if "
              "t.name == 'NAME'))"},
    Signature{"MATLAB 5.0 MAT-file", "a MATLAB 5 file",
              "numpy.save('x.npy', scipy.io.loadmat('x.mat')['NAME'])"},
    // HDF5, in which axes are the other way round.
    Signature{"MATLAB 7.3 MAT-file", "a MATLAB 7.3 file",
              "numpy.save('x.npy', h5py.File('x.mat')['NAME'][()].T)"},
    Signature{"PAR1", "a Parquet file",
              "numpy.save('x.npy', pandas.read_parquet('x.parquet').to_numpy())"},
    Signature{"ARROW1", "an Arrow file",
              "numpy.save('x.npy', pyarrow.ipc.open_file('x.arrow').read_pandas().to_numpy())"},
    Signature{"FEA1", "a Feather file",
              "numpy.save('x.npy', pandas.read_feather('x.feather').to_numpy())"},
    Signature{"version https://git-lfs", "a git-lfs pointer; fetch the file itself (git lfs pull)",
              ""},
    Signature{"\xff\xfe", "UTF-16 text, expected UTF-8", ""},
    Signature{"\xfe\xff", "UTF-16 text, expected UTF-8", ""},
    Signature{"\x80",
              "a Python pickle, which is never executed; save a .pt again by torch.save of PyTorch "
              "1.6 or newer, an array by numpy.save",
              ""},
    Signature{"<!", "HTML or XML, perhaps an error page of a download", ""},
    Signature{"<html", "HTML, perhaps an error page of a download", ""},
    Signature{"<?xml", "XML", ""},
};

// It has no signature.
constexpr Signature kTFRecord{
    "", "a TFRecord file",
    "numpy.save('x.npy', [tensorflow.train.Example.FromString(r.numpy()).features.feature['NAME']"
    ".float_list.value for r in tensorflow.data.TFRecordDataset('x.tfrecord')])"};

std::uint32_t crc32c(std::string_view bytes) noexcept {
  constexpr std::uint32_t kReversedPolynomial = 0x82f63b78;
  std::uint32_t crc = 0xffffffff;
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1) != 0 ? kReversedPolynomial : 0);
  }
  return ~crc;
}

}  // namespace

bool is_tfrecord(std::string_view head) noexcept {
  constexpr std::uint32_t kMask = 0xa282ead8;
  if (head.size() < 12) return false;
  const std::uint32_t crc = crc32c(head.substr(0, 8));
  return from_little_endian(head.substr(8, 4)) == ((crc >> 15 | crc << 17) + kMask);
}

std::optional<UnsupportedFormat> find_unsupported_format(std::string_view head) {
  const auto* const found =
      is_tfrecord(head)
          ? &kTFRecord
          : std::find_if(kSignatures.begin(), kSignatures.end(),
                         [&](const Signature& s) { return head.starts_with(s.bytes); });
  if (found == kSignatures.end()) return std::nullopt;
  return UnsupportedFormat{std::string(found->what),
                           found->python.empty() ? "" : concat("in Python: ", found->python)};
}

}  // namespace lnorm
