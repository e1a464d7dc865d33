#include "lnorm/io/zip/zip_archive.hpp"

#include <algorithm>
#include <array>
#include <exception>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "lnorm/core/byte_order.hpp"
#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/io/zip/libzip.hpp"
#include "lnorm/io/zip/stored_member.hpp"
#include "lnorm/io/zip/zip_directory.hpp"

namespace lnorm {

namespace {

// libzip keeps some 300 bytes for each.
constexpr std::uint64_t kMaxMembers = 200'000;

// Of a member: where it begins, and what comes before its name. [APPNOTE 4.3.7]
constexpr std::string_view kLocalHeader = "PK\x03\x04";
constexpr std::size_t kLocalHeaderSize = 30;
constexpr std::size_t kNameSizeAt = 26;

constexpr std::string_view kContradiction =
    "the zip archive is damaged: its directory and its members contradict each other";

std::string describe(const zip_error_t& error) {
  switch (libzip().zip_error_code_zip(&error)) {
    case ZIP_ER_NOZIP:
    case ZIP_ER_INCONS:
      return std::string(kContradiction);
    case ZIP_ER_EXISTS:
      return "the zip archive has two members of the same name";
    case ZIP_ER_CRC:
      return "is damaged: the CRC-32 of the data is not what the zip directory says";
    case ZIP_ER_ZLIB:
    case ZIP_ER_COMPRESSED_DATA:
      return "is damaged: the deflated data cannot be inflated";
    case ZIP_ER_EOF:
      return "is cut off";
    default:
      return libzip().zip_error_strerror(const_cast<zip_error_t*>(&error));
  }
}

std::string method_name(std::uint16_t number) {
  using Named = std::pair<std::uint16_t, const char*>;
  for (const auto& [method, name] : {Named{9, "deflate64"}, Named{12, "bzip2"}, Named{14, "lzma"},
                                     Named{93, "zstd"}, Named{95, "xz"}}) {
    if (method == number) return name;
  }
  return concat("method ", number);
}

// Whether one of the first members is the pickle of a file of PyTorch.
bool starts_torch(ByteSource& bytes) {
  constexpr std::string_view kPickle = "data.pkl";
  const auto ahead = bytes.peek(ByteSource::kLookAhead);
  const std::string_view start(reinterpret_cast<const char*>(ahead.data()), ahead.size());
  for (std::size_t at = 0; (at = start.find(kLocalHeader, at)) != start.npos; ++at) {
    if (start.size() - at < kLocalHeaderSize) return false;
    const std::string_view name =
        start.substr(at + kLocalHeaderSize, from_little_endian(start.substr(at + kNameSizeAt, 2)));
    if (name.ends_with(kPickle)) return true;
  }
  return false;
}

std::unique_ptr<ByteSource> with_random_access(std::unique_ptr<ByteSource> bytes) {
  if (bytes->has_random_access()) return bytes;
  const std::string_view extension = starts_torch(*bytes) ? ".pt" : ".npz";
  throw Error(concat(printable(bytes->name()), ": a zip archive (", extension,
                     ") cannot be read from a pipe, since its directory is at its end"),
              concat("name the file, or redirect it (< x", extension, ")"));
}

}  // namespace

// What libzip reads through: an archive within a source of bytes, at a position of its own.
struct ZipArchive::State {
  explicit State(std::unique_ptr<ByteSource> source)
      : bytes(std::move(source)), name(bytes->name()) {
    libzip().zip_error_init(&error);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    if (archive != nullptr) libzip().zip_discard(archive);
    libzip().zip_error_fini(&error);
  }

  static zip_int64_t call(void* user, void* data, zip_uint64_t length, zip_source_cmd_t command) {
    auto& state = *static_cast<State*>(user);
    try {
      return state.answer(data, length, command);
    } catch (...) {
      // libzip is C: the exception waits until it has returned.
      state.fault = std::current_exception();
      libzip().zip_error_set(&state.error, ZIP_ER_READ, 0);
      return -1;
    }
  }

  zip_int64_t answer(void* data, zip_uint64_t length, zip_source_cmd_t command) {
    switch (command) {
      case ZIP_SOURCE_OPEN:
        position = 0;
        return 0;
      case ZIP_SOURCE_READ: {
        const auto wanted =
            std::min<zip_uint64_t>(length, static_cast<zip_uint64_t>(size - position));
        const std::size_t got = bytes->read_at(
            start + position, {static_cast<std::byte*>(data), static_cast<std::size_t>(wanted)});
        position += static_cast<std::int64_t>(got);
        return static_cast<zip_int64_t>(got);
      }
      case ZIP_SOURCE_SEEK: {
        const zip_int64_t to = libzip().zip_source_seek_compute_offset(
            static_cast<zip_uint64_t>(position), static_cast<zip_uint64_t>(size), data, length,
            &error);
        if (to < 0) return -1;
        position = to;
        return 0;
      }
      case ZIP_SOURCE_TELL:
        return position;
      case ZIP_SOURCE_STAT: {
        auto* const stat = static_cast<zip_stat_t*>(data);
        libzip().zip_stat_init(stat);
        stat->size = static_cast<zip_uint64_t>(size);
        stat->valid = ZIP_STAT_SIZE;
        return sizeof(zip_stat_t);
      }
      case ZIP_SOURCE_ERROR:
        return libzip().zip_error_to_data(&error, data, length);
      case ZIP_SOURCE_CLOSE:
      case ZIP_SOURCE_FREE:
        return 0;
      case ZIP_SOURCE_SUPPORTS:
        return ZIP_SOURCE_SUPPORTS_SEEKABLE;
      default:
        libzip().zip_error_set(&error, ZIP_ER_OPNOTSUPP, 0);
        return -1;
    }
  }

  [[noreturn]] void fail(const std::string& who, const zip_error_t& what) {
    if (fault) std::rethrow_exception(std::exchange(fault, nullptr));
    throw Error(concat(printable(who), ": ", describe(what)));
  }

  zip_stat_t status(std::size_t index) {
    zip_stat_t stat;
    libzip().zip_stat_init(&stat);
    if (libzip().zip_stat_index(archive, index, 0, &stat) != 0) {
      fail(name, *libzip().zip_get_error(archive));
    }
    return stat;
  }

  static std::int64_t size_of(const zip_stat_t& stat, const std::string& who) {
    const auto size = static_cast<std::int64_t>(stat.size);
    if (size < 0) throw Error(concat(printable(who), ": is said to have more than 2^63 - 1 bytes"));
    return size;
  }

  // Where the bytes of a stored member begin.
  std::int64_t data_begin(std::size_t index, std::int64_t stored_bytes) const {
    std::array<char, kLocalHeaderSize> header{};
    const auto directory = static_cast<std::uint64_t>(directory_begin - start);
    const auto contradiction = [&] { return Error(concat(printable(name), ": ", kContradiction)); };
    const std::uint64_t offset = header_offsets[index];
    if (offset > directory) throw contradiction();
    const std::size_t got = bytes->read_at(start + static_cast<std::int64_t>(offset),
                                           std::as_writable_bytes(std::span(header)));
    const std::string_view text(header.data(), got);
    if (got < header.size() || !text.starts_with(kLocalHeader)) throw contradiction();
    const std::uint64_t begin = offset + kLocalHeaderSize +
                                from_little_endian(text.substr(kNameSizeAt, 2)) +
                                from_little_endian(text.substr(kNameSizeAt + 2, 2));
    if (begin > directory || static_cast<std::uint64_t>(stored_bytes) > directory - begin) {
      throw contradiction();
    }
    return start + static_cast<std::int64_t>(begin);
  }

  std::shared_ptr<const ByteSource> bytes;
  std::string name;
  std::int64_t start = 0;
  std::int64_t size = 0;
  std::int64_t directory_begin = 0;
  std::vector<std::uint64_t> header_offsets;  // of the members, from start on
  std::int64_t position = 0;
  std::exception_ptr fault;
  zip_error_t error;
  zip_t* archive = nullptr;
};

ZipArchive::ZipArchive(std::unique_ptr<ByteSource> bytes)
    : state_(std::make_unique<State>(with_random_access(std::move(bytes)))) {
  State& state = *state_;
  const ZipDirectory directory = find_zip_directory(*state.bytes);
  if (directory.entries > kMaxMembers) {
    throw Error(concat(printable(state.name), ": the zip archive has ", directory.entries,
                       " members, expected at most ", kMaxMembers));
  }
  state.start = directory.start;
  state.directory_begin = directory.begin;
  state.size = state.bytes->remaining().value() - state.start;
  zip_error_t error;
  libzip().zip_error_init(&error);
  zip_source_t* const source = libzip().zip_source_function_create(State::call, &state, &error);
  if (source != nullptr) {
    state.archive = libzip().zip_open_from_source(source, ZIP_RDONLY | ZIP_CHECKCONS, &error);
    if (state.archive == nullptr) libzip().zip_source_free(source);
  }
  if (state.archive == nullptr) state.fail(state.name, error);
  // libzip has checked the members, but does not tell where they are.
  state.header_offsets = read_header_offsets(state.bytes, directory);
  if (state.header_offsets.size() != size()) {
    throw Error(concat(printable(state.name), ": ", kContradiction));
  }
}

ZipArchive::~ZipArchive() = default;

const std::string& ZipArchive::name() const noexcept { return state_->name; }

std::size_t ZipArchive::size() const {
  return static_cast<std::size_t>(libzip().zip_get_num_entries(state_->archive, 0));
}

std::string ZipArchive::member_name(std::size_t index) const {
  const char* const name = libzip().zip_get_name(state_->archive, index, ZIP_FL_ENC_RAW);
  return name == nullptr ? "" : name;
}

std::int64_t ZipArchive::member_bytes(std::size_t index) const {
  return state_->size_of(state_->status(index), state_->name);
}

std::int64_t ZipArchive::place(std::size_t index) const {
  return static_cast<std::int64_t>(state_->header_offsets[index]);
}

class ZipArchive::Deflated final : public ByteSource {
 public:
  Deflated(std::string name, std::shared_ptr<const ZipArchive> archive, std::size_t index,
           std::int64_t size)
      : ByteSource(std::move(name)), archive_(std::move(archive)), unread_(size) {
    State& state = *archive_->state_;
    file_ = libzip().zip_fopen_index(state.archive, index, 0);
    if (file_ == nullptr) state.fail(this->name(), *libzip().zip_get_error(state.archive));
  }
  ~Deflated() override { libzip().zip_fclose(file_); }

 protected:
  std::size_t read_some(std::span<std::byte> to) override {
    const zip_int64_t got = libzip().zip_fread(file_, to.data(), to.size());
    if (got < 0) archive_->state_->fail(name(), *libzip().zip_file_get_error(file_));
    unread_ -= got;
    return static_cast<std::size_t>(got);
  }
  std::optional<std::int64_t> unread() const override { return unread_; }

 private:
  std::shared_ptr<const ZipArchive> archive_;
  zip_file_t* file_ = nullptr;
  std::int64_t unread_;
};

std::unique_ptr<ByteSource> ZipArchive::open(std::shared_ptr<const ZipArchive> archive,
                                             std::size_t index, std::string name, Sums sums) {
  State& state = *archive->state_;
  const auto fail = [&](const std::string& what) {
    throw Error(concat(printable(name), ": is ", what));
  };
  const zip_stat_t stat = state.status(index);
  if (stat.encryption_method != ZIP_EM_NONE) fail("encrypted, which lnorm does not read");
  if (stat.comp_method != ZIP_CM_STORE && stat.comp_method != ZIP_CM_DEFLATE) {
    fail(concat("compressed by ", method_name(stat.comp_method), ", expected stored or deflated"));
  }
  // Of what takes no room libzip does not look at the sum.
  if (stat.comp_size == 0 && stat.crc != 0) state.fail(name, {ZIP_ER_CRC, 0, nullptr});
  const std::int64_t size = State::size_of(stat, name);
  if (stat.comp_method == ZIP_CM_DEFLATE) {
    return std::make_unique<Deflated>(std::move(name), std::move(archive), index, size);
  }
  if (stat.comp_size != stat.size) {
    fail(concat("stored in ", stat.comp_size, " bytes, but said to have ", stat.size));
  }
  const bool has_sum = sums == Sums::complete || stat.crc != 0;
  return open_stored_member(state.bytes, std::move(name), state.data_begin(index, size), size,
                            has_sum ? std::optional(stat.crc) : std::nullopt);
}

}  // namespace lnorm
