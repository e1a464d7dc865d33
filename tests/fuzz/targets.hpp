#pragma once

#include <cstddef>
#include <cstdint>

// What the fuzzers call: each takes any bytes and throws std::runtime_error where the library or the program
// does not keep what it promises of them. driver.cpp makes an executable of each; the seeds, and whatever was
// found, are in data/fuzz/, and are passed through them by the tests, too.

// A file in the .npy format: is read the same from a pipe, holds what follows its header, and comes back from
// what is written. Then a header's dict alone.
int fuzz_npy(const std::uint8_t* data, std::size_t size);

// A .safetensors file: its tensors tile it and have its bytes, a pipe gives the same, and what is read comes
// back from what is written.
int fuzz_safetensors(const std::uint8_t* data, std::size_t size);

// An .npz file: whatever its members are, they are listed, have the sums of the directory, and are read like
// the .npy files that they are. What is an .npy file becomes a member, too.
int fuzz_npz(const std::uint8_t* data, std::size_t size);

// The pickle of a .pt, in an archive with some storages: it gives the same tensors alone and there, with the
// elements that their strides say. Or a whole .pt.
int fuzz_torch(const std::uint8_t* data, std::size_t size);

// A TensorProto of ONNX: a pipe gives the same as a file, the fields that count are the last ones, and what is
// read comes back from raw_data.
int fuzz_onnx(const std::uint8_t* data, std::size_t size);

// A GGUF file: its tensors are those that another reader finds, with the bytes at their offsets.
int fuzz_gguf(const std::uint8_t* data, std::size_t size);

// JSON, and what it has under some keys: what is read comes back from what is written.
int fuzz_json(const std::uint8_t* data, std::size_t size);

// The first byte chooses a command line, or a command alone: then a byte says how many bytes follow from which
// its options are drawn. The rest is the input: from a file by one thread, and from a pipe by two and any of
// the kernels, exit status, result and files are the same; a refusal is one line.
int fuzz_program(const std::uint8_t* data, std::size_t size);
