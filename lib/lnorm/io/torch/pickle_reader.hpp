#pragma once

#include <string>
#include <string_view>

#include "lnorm/io/torch/pickle_value.hpp"

namespace lnorm {

// Reads a Python pickle, of protocols 2 to 5, as values; nothing is imported, and nothing is called.
// [Python, Lib/pickletools.py]
//
// The opcodes are those that torch.save writes for tensors in dicts, lists and tuples, and for objects beside them.
// collections.OrderedDict() is a dict. An object of another class is a call; its attributes and items are passed over.
// name: for messages. Throws Error for any other opcode, and for a pickle that is not well formed or has more opcodes
// than a file of tensors needs: at most 160 MiB are held.
Pickle read_pickle(std::string_view bytes, const std::string& name);

// The line of Python that saves the tensors of a file whose value, or one of whose values, is refused: an object of that
// class.
std::string hint_to_save_tensors(const std::string& file, std::string_view object = {},
                                 bool is_member = false);

}  // namespace lnorm
