#pragma once

#include <zip.h>
#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace lnorm {

// The functions of libzip that we use, and those of zlib, which comes with it.
// clang-format off
#define LNORM_LIBZIP_FUNCTIONS(use)   \
  use(crc32_combine)                  \
  use(crc32_z)                        \
  use(zip_discard)                    \
  use(zip_error_code_zip)             \
  use(zip_error_fini)                 \
  use(zip_error_init)                 \
  use(zip_error_set)                  \
  use(zip_error_strerror)             \
  use(zip_error_to_data)              \
  use(zip_fclose)                     \
  use(zip_file_get_error)             \
  use(zip_fopen_index)                \
  use(zip_fread)                      \
  use(zip_get_error)                  \
  use(zip_get_name)                   \
  use(zip_get_num_entries)            \
  use(zip_open_from_source)           \
  use(zip_source_free)                \
  use(zip_source_function_create)     \
  use(zip_source_seek_compute_offset) \
  use(zip_stat_index)                 \
  use(zip_stat_init)
// clang-format on

// They are called by their own names: libzip().zip_fread(...).
//
// libzip is not linked to but loaded, when the first archive is opened: with it comes libcrypto, and to start
// that takes longer than all of the work on a small tensor that is in no archive.
struct LibZip {
#define LNORM_DECLARE(function) \
  decltype(&::function) function;  // NOLINT(bugprone-macro-parentheses)
  LNORM_LIBZIP_FUNCTIONS(LNORM_DECLARE)
#undef LNORM_DECLARE
};

// Throws SystemError if libzip is not there. What is loaded stays.
const LibZip& libzip();

// The CRC-32 of bytes that follow those of another; 0 is that of none.
inline std::uint32_t crc32_of(std::span<const std::byte> bytes, std::uint32_t before = 0) {
  const auto* const data = reinterpret_cast<const unsigned char*>(bytes.data());
  return static_cast<std::uint32_t>(libzip().crc32_z(before, data, bytes.size()));
}

}  // namespace lnorm
