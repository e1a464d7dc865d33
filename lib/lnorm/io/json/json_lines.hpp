#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "lnorm/io/byte_source.hpp"
#include "lnorm/io/json/json_tensor.hpp"
#include "lnorm/io/tensor_source.hpp"

namespace lnorm {

// JSON Lines: one tensor a line, as json_tensor.hpp has it [jsonlines.org]. Blank lines count, but hold
// nothing.
class JsonLines {
 public:
  JsonLines(std::unique_ptr<ByteSource> bytes, std::optional<DType> dtype)
      : bytes_(std::move(bytes)), dtype_(dtype.value_or(DType::float64)) {}

  // The tensor of the next line, or the member of that name of it, which is an object, as soon as that line is there;
  // nothing after the last one. It is named "x.jsonl:2", and so begins what is thrown about it.
  std::optional<JsonLineMember> next(const std::optional<std::string>& member);

  // The tensor of a line, counted from 1, or of the only one that is not blank. Throws Error if there is
  // no such line, or if there are several and none is named.
  std::unique_ptr<TensorSource> only(const std::optional<std::string>& line);

 private:
  // The next line that is not blank, without its end; false if there is none.
  bool read_line();
  std::unique_ptr<TensorSource> parse_line();

  std::unique_ptr<ByteSource> bytes_;
  DType dtype_;
  std::string line_;
  std::int64_t number_ = 0;  // of line_, from 1
};

}  // namespace lnorm
