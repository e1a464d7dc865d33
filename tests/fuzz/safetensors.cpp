#include "lnorm/io/safetensors/safetensors.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "fuzz/in_memory.hpp"
#include "fuzz/targets.hpp"
#include "lnorm/core/byte_order.hpp"
#include "lnorm/io/byte_source.hpp"
#include "support/sets.hpp"

namespace {

using namespace fuzz;
using Json = nlohmann::json;

// Nothing where it is refused.
std::optional<Tensor> read(const Descriptor& from, const std::optional<std::string>& member) {
  return unless_refused([&] {
    const auto set = lnorm::open_safetensors(lnorm::open_file(from.path()));
    const auto [info, bytes] = support::read_tensor(*set, member);
    return Tensor{info, support::text_of(bytes)};
  });
}

// Sorted by name.
std::optional<std::vector<lnorm::Member>> list(const Descriptor& from) {
  return unless_refused([&] {
    const auto set = lnorm::open_safetensors(lnorm::open_file(from.path()));
    auto result = support::list(*set);
    set->finish();
    std::sort(result.begin(), result.end(),
              [](const auto& a, const auto& b) { return a.name < b.name; });
    return result;
  });
}

bool are_alike(const std::vector<lnorm::Member>& a, const std::vector<lnorm::Member>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.name == y.name && x.dtype == y.dtype && x.shape == y.shape;
  });
}

// What another parser finds in the header of a file that was accepted, sorted by name.
struct Claim {
  std::string name;
  std::string dtype;
  lnorm::Shape shape;
  std::size_t begin;
  std::size_t end;
};

struct SafetensorsClaims {
  std::string_view data;
  std::vector<Claim> tensors;
};

SafetensorsClaims safetensors_claims(std::string_view bytes) {
  const std::size_t length = support::little_endian(bytes, 8);
  SafetensorsClaims claims{bytes.substr(8 + length), {}};
  const Json header = Json::parse(bytes.substr(8, length));
  for (const auto& [name, tensor] : header.items()) {
    if (name == "__metadata__") continue;
    const Json& offsets = tensor.at("data_offsets");
    claims.tensors.push_back(
        {name, tensor.at("dtype"), tensor.at("shape"), offsets.at(0), offsets.at(1)});
  }
  return claims;
}

void check_tiles(const SafetensorsClaims& claims) {
  std::vector<std::pair<std::size_t, std::size_t>> tiles;
  for (const Claim& claim : claims.tensors) tiles.emplace_back(claim.begin, claim.end);
  std::sort(tiles.begin(), tiles.end());
  std::size_t reached = 0;
  for (const auto& [begin, end] : tiles) {
    require(begin == reached && end >= begin, "the tensors tile the data");
    reached = end;
  }
  require(reached == claims.data.size(), "the tensors cover the data");
}

struct DTypeName {
  std::string_view here;
  std::string_view there;
};
constexpr std::array kReadDTypes{
    DTypeName{"F64", "float64"},
    DTypeName{"F32", "float32"},
    DTypeName{"F16", "float16"},
    DTypeName{"F8_E4M3", "float8_e4m3fn"},
    DTypeName{"F8_E5M2", "float8_e5m2"},
    DTypeName{"BF16", "bfloat16"},
    DTypeName{"I8", "int8"},
    DTypeName{"I16", "int16"},
    DTypeName{"I32", "int32"},
    DTypeName{"I64", "int64"},
    DTypeName{"U8", "uint8"},
    DTypeName{"U16", "uint16"},
    DTypeName{"U32", "uint32"},
    DTypeName{"U64", "uint64"},
    DTypeName{"BOOL", "bool"},
};

// Null if it is none that is read.
const DTypeName* find_dtype(std::string_view name) {
  const auto* const found = std::find_if(kReadDTypes.begin(), kReadDTypes.end(),
                                         [&](const auto& entry) { return entry.here == name; });
  return found == kReadDTypes.end() ? nullptr : found;
}

std::string written(const Tensor& tensor, const std::string& name) {
  lnorm::TensorInfo info = tensor.info;
  info.name = name;
  std::string native = tensor.elements;
  lnorm::make_native(std::as_writable_bytes(std::span(native)), info.dtype, info.byte_order);
  return file_of([&](lnorm::ByteSink& bytes) {
    const auto set = lnorm::make_safetensors_sink(bytes, {info});
    put(*set->begin(info), std::as_bytes(std::span(native)));
    set->finish();
  });
}

void check_written(const Tensor& tensor, const std::string& name) {
  const std::string bytes = written(tensor, name);
  const MemoryFile file(bytes);
  require(are_alike(read(file, name), tensor), "a tensor that was written comes back by its name");
  require(are_alike(read(file, {}), tensor), "and without, since it is the only one");
  const SafetensorsClaims claims = safetensors_claims(bytes);
  require(claims.tensors.size() == 1 && claims.tensors[0].name == name, "it has its name");
  require((bytes.size() - claims.data.size()) % 8 == 0, "its elements are aligned");
}

void check_tensor(const MemoryFile& file, const std::optional<FullPipe>& pipe,
                  const lnorm::Member& listed, const Claim& claim, std::string_view data) {
  require(listed.name == claim.name, "every tensor of the header is listed");
  require(listed.shape == claim.shape, "it is listed with its shape");
  const auto tensor = read(file, claim.name);
  if (pipe)
    require(are_alike(read(*pipe, claim.name), tensor), "a pipe has the tensor of the file");
  const DTypeName* const dtype = find_dtype(claim.dtype);
  require(tensor.has_value() == (dtype != nullptr), "what is read depends on the dtype alone");
  if (!tensor) return;
  require(listed.dtype == dtype->there, "it is listed with its dtype");
  require(name(tensor->info.dtype) == dtype->there, "it has the dtype of the header");
  require(tensor->info.shape == claim.shape, "it has the shape of the header");
  require(tensor->elements == data.substr(claim.begin, claim.end - claim.begin),
          "it has the bytes at its offsets");
  check_written(*tensor, claim.name);
}

}  // namespace

int fuzz_safetensors(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes = bytes_of(data, size);
  const MemoryFile file(bytes);
  const bool fits = size <= kPipeBytes;
  const auto listed = list(file);
  if (fits) {
    const auto piped = list(FullPipe(bytes));
    require(piped.has_value() == listed.has_value(), "a pipe is listed where a file is");
    require(!listed || are_alike(*piped, *listed), "a pipe is listed like the file");
  }
  const auto only = read(file, {});
  if (fits) require(are_alike(read(FullPipe(bytes), {}), only), "a pipe is read where a file is");
  if (!listed) {
    require(!only, "what cannot be listed is not read");
    return 0;
  }
  const SafetensorsClaims claims = safetensors_claims(bytes);
  check_tiles(claims);
  require(listed->size() == claims.tensors.size(), "all tensors of the header are listed");
  require(!only || listed->size() == 1, "one of several tensors needs a name");
  for (std::size_t i = 0; i < listed->size(); ++i) {
    std::optional<FullPipe> pipe;
    if (fits) pipe.emplace(bytes);
    check_tensor(file, pipe, (*listed)[i], claims.tensors[i], claims.data);
  }
  return 0;
}
