#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "lnorm/core/dtype.hpp"
#include "lnorm/core/shape.hpp"
#include "lnorm/report/torch_text.hpp"

namespace support {

// A tensor and what PyTorch prints for it.
struct TorchCase {
  lnorm::DType dtype;
  lnorm::Shape shape;
  std::vector<std::byte> elements;  // native-endian, in C order
  lnorm::PrintOptions options;
  std::vector<std::string> arguments;  // the options for the command line, the defaults left out
  std::string text;
};

// Those of data/torch_text/cases.json, which make_cases.py beside it describes.
struct TorchCases {
  std::vector<TorchCase> all;  // those of "cases", then of "random"
  std::size_t random_count = 0;
};
TorchCases torch_cases();

}  // namespace support
