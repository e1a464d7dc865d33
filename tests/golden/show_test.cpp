#include <bit>

#include "support/commands.hpp"
#include "support/torch_cases.hpp"

// What PyTorch printed (data/torch_text), shown by the program.

namespace {

using namespace support;

// support::npy, and for shapes that do not fit in its header one as long as they need.
std::string npy_of_any_rank(const std::string& descr, const lnorm::Shape& shape,
                            const std::string& bytes) {
  if (shape.size() <= 5) return npy(descr, shape, bytes);
  std::string header = npy(descr, {}, "");
  header.replace(header.find("()"), 2, lnorm::to_string(shape));
  header.insert(header.size() - 1, 64 - header.size() % 64, ' ');
  header[8] = static_cast<char>((header.size() - 10) % 256);
  header[9] = static_cast<char>((header.size() - 10) / 256);
  return header + bytes;
}

std::string npy_of(const TorchCase& test, std::endian order) {
  const std::size_t item = lnorm::item_size(test.dtype);
  const std::string bytes(reinterpret_cast<const char*>(test.elements.data()),
                          test.elements.size());
  const std::string mark = item == 1 ? "|" : order == std::endian::little ? "<" : ">";
  const char kind = lnorm::name(test.dtype)[0];  // as NumPy's code: bool, int, uint or float
  return npy_of_any_rank(mark + kind + std::to_string(item), test.shape,
                         order == std::endian::native ? bytes : swapped(bytes, item));
}

}  // namespace

TEST_CASE("show prints what PyTorch printed", "[many]") {
  const Workplace directory;
  const TorchCases cases = torch_cases();
  REQUIRE(cases.random_count >= 300);
  for (std::size_t i = 0; i < cases.all.size(); ++i) {
    const TorchCase& test = cases.all[i];
    const auto order = i % 5 == 0 ? std::endian::big : std::endian::little;
    const bool piped = i % 7 == 0;
    CAPTURE(i, lnorm::name(test.dtype), lnorm::to_string(test.shape), test.arguments);
    const std::string file = npy_of(test, order);
    Command command{.arguments = {"show", piped ? "-" : directory / "x.npy"}};
    command.arguments += test.arguments;
    if (piped) {
      command.in = pipe_of(file);
    } else {
      directory.write("x.npy", file);
    }
    CHECK(difference(output_of(command), test.text + "\n") == "");
  }
}
