#pragma once

#include <memory>
#include <string_view>

#include "lnorm/io/byte_source.hpp"
#include "lnorm/io/tensor_set.hpp"

// A checkpoint in several .safetensors files, and an index of them:
//   {"metadata": ..., "weight_map": {"model.norm.weight": "model-00002-of-00002.safetensors", ...}}
// [Hugging Face, "Sharded checkpoints"]
namespace lnorm {

// Whether a file of JSON is one, by its name: it ends in .index.json.
bool is_index_of_shards(std::string_view path) noexcept;

// The tensors of weight_map, in natural order. bytes: a file, beside which the shards lie. A shard is opened
// when a tensor of it is asked for; that it is missing, or does not have the tensor, is an error then. Throws
// Error if the index is not well formed, or names a file that is not beside it.
std::unique_ptr<TensorSet> open_shards(std::unique_ptr<ByteSource> bytes);

}  // namespace lnorm
