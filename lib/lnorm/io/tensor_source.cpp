#include "lnorm/io/tensor_source.hpp"

#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/io/byte_source.hpp"
#include "lnorm/io/json_tensor.hpp"
#include "lnorm/io/npy.hpp"

namespace lnorm {

namespace {

struct TensorName {
  std::string path;
  std::optional<std::string> member;
};

TensorName split_name(const std::string& name) {
  struct stat ignored;
  if (name == "-" || os::exists(name, &ignored)) return {name, {}};
  for (std::size_t colon = name.rfind(':'); colon != std::string::npos && colon > 0;
       colon = name.rfind(':', colon - 1)) {
    const std::string path = name.substr(0, colon);
    if (path == "-" || os::exists(path, &ignored)) return {path, name.substr(colon + 1)};
  }
  return {name, {}};
}

}  // namespace

void TensorSource::read_at(std::int64_t, std::span<std::byte>) const {
  throw Error(concat(printable(info_.name), ": cannot be read at a position"));
}

OpenedTensor open_tensor(const std::string& name, std::optional<Format> from) {
  const TensorName parts = split_name(name);
  ByteSource bytes(parts.path);
  const Format format = from ? *from : detect_format(bytes);
  if (format == Format::json) return {open_json(std::move(bytes), parts.member), format};
  if (parts.member) {
    throw Error(concat(printable(bytes.name()),
                       ": an .npy file holds one tensor without a name, found ':",
                       printable(*parts.member), "' after it"));
  }
  return {open_npy(std::move(bytes)), format};
}

bool is_standard_input(std::string_view name) noexcept {
  return name == "-" || name.starts_with("-:");
}

std::vector<std::byte> read_all(TensorSource& source) {
  std::vector<std::byte> elements;
  const auto count = static_cast<std::size_t>(element_count(source.info().shape));
  source.read(elements, count * item_size(source.info().dtype));
  source.finish();
  return elements;
}

}  // namespace lnorm
