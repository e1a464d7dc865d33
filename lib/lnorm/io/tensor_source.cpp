#include "lnorm/io/tensor_source.hpp"

#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"

namespace lnorm {

void TensorSource::read_at(std::int64_t, std::span<std::byte>) const {
  throw Error(concat(printable(info_.name), ": cannot be read at a position"));
}

std::vector<std::byte> read_all(TensorSource& source) {
  std::vector<std::byte> elements;
  const auto count = static_cast<std::size_t>(element_count(source.info().shape));
  source.read(elements, count * item_size(source.info().dtype));
  source.finish();
  return elements;
}

}  // namespace lnorm
