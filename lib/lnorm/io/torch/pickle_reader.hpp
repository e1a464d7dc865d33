#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "lnorm/io/torch/pickle_value.hpp"

namespace lnorm {

// Reads a Python pickle, of protocols 2 to 5, as values; nothing is imported, and nothing is called.
// [Python, Lib/pickletools.py]
//
// The opcodes are those that torch.save writes for tensors in dicts, lists and tuples.
// collections.OrderedDict() is a dict, whose attributes are passed over. is_known: whether a global,
// "torch.FloatStorage", may be there. name: for messages. Throws Error for any other opcode or global, and for
// a pickle that is not well formed or has more opcodes than a file of tensors needs: at most 160 MiB are held.
Pickle read_pickle(std::string_view bytes, const std::string& name,
                   const std::function<bool(std::string_view)>& is_known);

}  // namespace lnorm
