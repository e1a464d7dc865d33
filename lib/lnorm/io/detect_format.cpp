#include "lnorm/io/detect_format.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "lnorm/core/byte_order.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/io/byte_slice.hpp"
#include "lnorm/io/json/json_text.hpp"
#include "lnorm/io/members.hpp"
#include "lnorm/io/safetensors/safetensors_header.hpp"

namespace lnorm {

namespace {

// A format that is not read.
struct Signature {
  std::string_view bytes;
  std::string_view what;  // "an HDF5 file"
  std::string_view hint;  // how Python makes an .npy of it, as in hint_about
};

// Adds the commas that NumPy leaves out, and writes numbers as JSON does.
constexpr std::string_view kReadPrinted =
    R"sh(it becomes JSON by sed -Ez 's/^[^[]*|[^]]*$//g; s/([0-9.nfe]|\])[[:space:]]+/\1, /g; s/, +([],])/\1/g; )sh"
    R"sh(s/nan/NaN/g; s/inf/Infinity/g; s/([0-9])\.([^0-9])/\1.0\2/g; s/True/1/g; s/False/0/g' < 'FILE' > 'FILE.json')sh";

// What people feed by mistake.
constexpr std::array kSignatures{
    Signature{"\x1f\x8b", "compressed with gzip; decompress it first (gunzip -c)", ""},
    Signature{"\x28\xb5\x2f\xfd", "compressed with zstd; decompress it first (zstd -dc)", ""},
    Signature{"\xfd"
              "7zXZ",
              "compressed with xz; decompress it first (xz -dc)", ""},
    Signature{"BZh", "compressed with bzip2; decompress it first (bzip2 -dc)", ""},
    Signature{"\x89HDF\r\n\x1a\n", "an HDF5 file",
              "in Python: numpy.save('FILE.npy', h5py.File('FILE')['NAME'][()])"},
    Signature{"MATLAB 5.0 MAT-file", "a MATLAB 5 file",
              "in Python: numpy.save('FILE.npy', scipy.io.loadmat('FILE')['NAME'])"},
    // HDF5, in which axes are the other way round.
    Signature{"MATLAB 7.3 MAT-file", "a MATLAB 7.3 file",
              "in Python: numpy.save('FILE.npy', h5py.File('FILE')['NAME'][()].T)"},
    Signature{"PAR1", "a Parquet file",
              "in Python: numpy.save('FILE.npy', pandas.read_parquet('FILE').to_numpy())"},
    Signature{"ARROW1", "an Arrow file",
              "in Python: numpy.save('FILE.npy', "
              "pyarrow.ipc.open_file('FILE').read_pandas().to_numpy())"},
    Signature{"FEA1", "a Feather file",
              "in Python: numpy.save('FILE.npy', pandas.read_feather('FILE').to_numpy())"},
    Signature{"version https://git-lfs", "a git-lfs pointer; fetch the file itself (git lfs pull)",
              ""},
    Signature{std::string_view("\xff\xfe\0\0", 4), "UTF-32 text, expected UTF-8", ""},
    Signature{"\xff\xfe", "UTF-16 text, expected UTF-8", ""},
    Signature{"\xfe\xff", "UTF-16 text, expected UTF-8", ""},
    Signature{"\x80\x02\x8a\x0al\xfc\x9c\x46\xf9 j\xa8P\x19",
              "a .pt as PyTorch wrote it before 1.6",
              "in Python, if you trust the file: torch.save(torch.load('FILE', "
              "weights_only=False), 'FILE.pt')"},
    Signature{"\x80",
              "a Python pickle, which is never executed; save a .pt again by torch.save of PyTorch "
              "1.6 or newer, an array by numpy.save",
              ""},
    Signature{"<!", "HTML or XML, perhaps an error page of a download", ""},
    Signature{"<html", "HTML, perhaps an error page of a download", ""},
    Signature{"<?xml", "XML", ""},
};

// These have no signature.
constexpr Signature kPrintedTensor{"tensor(", "what PyTorch prints, expected a file of a tensor",
                                   kReadPrinted};
constexpr Signature kPrintedArray{"rray(", "what NumPy prints, expected a file of a tensor",
                                  kReadPrinted};
constexpr Signature kTFRecord{
    "", "a TFRecord file",
    "in Python: numpy.save('FILE.npy', "
    "[tensorflow.train.Example.FromString(r.numpy()).features.feature['NAME']"
    ".float_list.value for r in tensorflow.data.TFRecordDataset('FILE')])"};

std::uint32_t crc32c(std::string_view bytes) noexcept {
  constexpr std::uint32_t kReversedPolynomial = 0x82f63b78;
  std::uint32_t crc = 0xffffffff;
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1) != 0 ? kReversedPolynomial : 0);
  }
  return ~crc;
}

// Records of TensorFlow: of each first its u64 length, then the masked CRC-32C of that.
bool is_tfrecord(std::string_view head) noexcept {
  constexpr std::uint32_t kMask = 0xa282ead8;
  if (head.size() < 12) return false;
  const std::uint32_t crc = crc32c(head.substr(0, 8));
  return from_little_endian(head.substr(8, 4)) == ((crc >> 15 | crc << 17) + kMask);
}

// A list of numbers without commas, or with points that JSON would have digits behind.
bool is_printed_array(std::string_view head) noexcept {
  const std::size_t first = head.find_first_not_of("[ \n");
  if (!head.starts_with('[') || first == head.npos) return false;
  head.remove_prefix(first);
  const std::size_t end = head.find_first_not_of("+-.0123456789aefinTrulsF");
  if (end == 0 || end == head.npos) return false;
  const std::size_t next = head.find_first_not_of(" \n", end);
  const bool has_next =
      next > end && next != head.npos && head.find_first_of("-.0123456789inTF", next) == next;
  return head[end - 1] == '.' || has_next;
}

bool is_printed_twice(std::string_view head) noexcept {
  int count = 0;
  for (const std::string_view word : {kPrintedTensor.bytes, kPrintedArray.bytes}) {
    for (std::size_t at = 0; (at = head.find(word, at)) != head.npos; ++at) ++count;
  }
  return count > 1;
}

// Which no text has, and elements alone have soon.
bool has_control_characters(std::string_view head) {
  constexpr std::string_view kOfText = "\t\n\f\r";
  return std::any_of(head.begin(), head.end(), [&](char c) {
    return static_cast<unsigned char>(c) < 0x20 && kOfText.find(c) == kOfText.npos;
  });
}

// What the first bytes of a file look like; null if like none of these.
const Signature* find_signature(std::string_view head) {
  if (is_tfrecord(head)) return &kTFRecord;
  // Behind "Parameter containing:\n", or a name.
  for (const Signature* const printed : {&kPrintedTensor, &kPrintedArray}) {
    const std::size_t at = head.find(printed->bytes);
    const bool is_text = at != head.npos && !has_control_characters(head.substr(0, at));
    if (is_text && !head.starts_with('{')) return printed;
  }
  if (is_printed_array(head)) return &kPrintedArray;
  const auto* const found =
      std::find_if(kSignatures.begin(), kSignatures.end(),
                   [&](const Signature& s) { return head.starts_with(s.bytes); });
  return found == kSignatures.end() ? nullptr : found;
}

bool is_utf16_without_mark(std::string_view head) {
  return head.size() >= 4 && (head[0] == '\0') != (head[1] == '\0') &&
         (head[0] == '\0') == (head[2] == '\0') && (head[1] == '\0') == (head[3] == '\0');
}

// u64 header length, of which no file needs the upper half, then a JSON object.
bool is_safetensors(std::string_view head) {
  return head.size() > 8 && head[8] == '{' && head.substr(4, 4) == std::string_view("\0\0\0\0", 4);
}

// Whether the header is one of a file of so many bytes.
bool has_safetensors_header(const ByteSource& source) {
  const std::shared_ptr<const ByteSource> unowned(std::shared_ptr<const ByteSource>(), &source);
  try {
    const auto copy = slice(unowned, source.name(), 0, source.remaining().value());
    read_safetensors_header(*copy);
    return true;
  } catch (const SystemError&) {
    throw;
  } catch (const Error&) {
    return false;
  }
}

bool starts_json(std::string_view head) {
  const bool has_mark = head.starts_with(kByteOrderMark);
  head = behind_mark(head);
  if (has_mark && head.starts_with(kByteOrderMark)) return true;
  head = trimmed_json(head);
  return head.find_first_of("[{-0123456789") == 0 || head.starts_with("NaN") ||
         head.starts_with("Infinity") || head.starts_with("null");
}

bool is_named_as_elements(std::string_view path) {
  return format_of_extension(path) == Format::raw || extension(path) == ".dat";
}

constexpr std::string_view kNpyMagic = "\x93NUMPY";
constexpr std::string_view kGgufMagic = "GGUF";

bool is_zip(std::string_view head) {
  return head.starts_with("PK\x03\x04") || head.starts_with("PK\x05\x06");  // of an empty one
}

}  // namespace

bool tells_format(ByteSource& source) {
  const std::string_view head = as_text(source.peek(32));
  if (head.starts_with(kNpyMagic) || is_zip(head) || head.starts_with(kGgufMagic)) return true;
  return is_safetensors(head) && (!source.has_random_access() || has_safetensors_header(source));
}

Format detect_format(ByteSource& source) {
  // No more than it takes: a pipe may be slow.
  std::string_view head = as_text(source.peek(32));
  if (trimmed_json(head).empty()) head = as_text(source.peek(ByteSource::kLookAhead));
  const bool is_all = head.size() < ByteSource::kLookAhead;
  if (head.empty() || (is_all && trimmed_json(head).empty())) {
    source.fail(head.empty() ? "is empty, expected a tensor" : "is blank, expected a tensor");
  }
  if (head.substr(0, kNpyMagic.size()) == kNpyMagic.substr(0, head.size())) return Format::npy;
  if (is_zip(head)) return Format::npz;
  if (head.starts_with(kGgufMagic)) return Format::gguf;
  const auto by_extension = format_of_extension(source.name());
  if (by_extension == Format::pb) return Format::pb;
  // Before the others: any two bytes may begin a length.
  if (!is_tfrecord(head) && is_safetensors(head)) return Format::safetensors;
  if (const Signature* const found = find_signature(head)) {
    const bool is_printed = found->hint == kReadPrinted;
    if (is_printed) head = as_text(source.peek(ByteSource::kLookAhead));
    const bool leaves_out = head.find("...") != head.npos;
    if (is_printed && (leaves_out || is_printed_twice(head))) {
      source.fail(concat("is ", found->what,
                         leaves_out ? ", and leaves elements out (...)" : ", found several"),
                  "in Python: numpy.save('FILE.npy', x) saves x itself");
    }
    // A number alone, or a list without elements, whose shape stands beside it.
    const bool has_list = head.find('[') != head.npos && head.find("[]") == head.npos;
    if (is_printed && !has_list) source.fail(concat("is ", found->what));
    source.fail(concat("is ", found->what), hint_about(source.name(), std::string(found->hint)));
  }
  const bool is_binary = has_control_characters(head);
  // A length may begin as JSON does.
  if (is_binary && by_extension && by_extension != Format::raw &&
      format_row(*by_extension).is_binary) {
    return *by_extension;
  }
  const bool names_elements = is_named_as_elements(source.name());
  if (!names_elements && is_utf16_without_mark(head)) source.fail("is UTF-16 text, expected UTF-8");
  if (starts_json(head) && !(names_elements && is_binary)) {
    return by_extension == Format::jsonl ? Format::jsonl : Format::json;
  }
  if (by_extension && by_extension != Format::text && by_extension != Format::raw) {
    return *by_extension;
  }
  const std::string what = concat(
      printable(source.name()),
      ": is none of .npy, .npz, .safetensors, .pt, .gguf and JSON of numbers: it starts with '",
      printable(head.substr(0, 16)), "'");
  if (is_binary || names_elements) throw ElementsAlone(what);
  head = as_text(source.peek(ByteSource::kLookAhead));
  throw Error(what, hint_for_table(source.name(), head));
}

}  // namespace lnorm
