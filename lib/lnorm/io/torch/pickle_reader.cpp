#include "lnorm/io/torch/pickle_reader.hpp"

#include <cstdint>
#include <optional>
#include <utility>

#include "lnorm/core/byte_order.hpp"
#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/io/members.hpp"

namespace lnorm {

namespace {

// A tensor takes some 40.
constexpr std::size_t kMaxOpcodes = 1'000'000;

constexpr std::string_view kOrderedDict = "collections.OrderedDict";

// Two's complement, the least significant byte first. Nothing if it does not fit.
std::optional<std::int64_t> to_integer(std::string_view bytes) {
  if (bytes.size() > 8) return std::nullopt;
  if (bytes.empty()) return 0;
  const int unused = 64 - 8 * static_cast<int>(bytes.size());
  return static_cast<std::int64_t>(from_little_endian(bytes) << unused) >> unused;
}

class Reader {
 public:
  Reader(std::string_view bytes, const std::string& name) : bytes_(bytes), name_(name) {}

  Pickle read() {
    for (std::size_t count = 0;; ++count) {
      at_ = offset_;
      if (count == kMaxOpcodes) fail(concat("goes on after ", kMaxOpcodes, " opcodes"));
      const auto opcode = static_cast<unsigned char>(take(1)[0]);
      if (opcode == '.') break;
      carry_out(opcode);
    }
    if (stack_.size() != 1 || !marks_.empty()) fail("ends in the middle of a value");
    if (offset_ != bytes_.size()) fail("goes on after its end");
    pickle_.root = stack_[0];
    return std::move(pickle_);
  }

 private:
  [[noreturn]] void fail(std::string_view what, std::string hint = {}) const {
    throw Error(concat(printable(name_), ": pickle, byte ", at_, ": ", what), std::move(hint));
  }

  std::string_view take(std::size_t size) {
    if (size > bytes_.size() - offset_) fail("is cut off");
    const std::string_view taken = bytes_.substr(offset_, size);
    offset_ += size;
    return taken;
  }
  // What follows a length of so many bytes.
  std::string_view take_counted(std::size_t length_bytes) {
    return take(from_little_endian(take(length_bytes)));
  }
  std::string_view take_line() {
    const std::size_t end = bytes_.find('\n', offset_);
    if (end == std::string_view::npos) fail("is cut off");
    const std::string_view line = take(end - offset_);
    ++offset_;
    return line;
  }

  void push(PickleValue value) {
    stack_.push_back(static_cast<PickleId>(pickle_.values.size()));
    pickle_.values.push_back(std::move(value));
  }
  // marks_ says which values wait for their tuple, list or dict: those are nobody else's.
  PickleId pop() {
    if (stack_.size() <= floor()) fail("takes a value that is not there");
    const PickleId id = stack_.back();
    stack_.pop_back();
    return id;
  }
  std::size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
  std::vector<PickleId> pop_last(std::size_t count) {
    if (stack_.size() - floor() < count) fail("takes a value that is not there");
    const auto first = stack_.end() - static_cast<std::ptrdiff_t>(count);
    std::vector<PickleId> items(first, stack_.end());
    stack_.erase(first, stack_.end());
    return items;
  }
  std::vector<PickleId> pop_to_mark() {
    if (marks_.empty()) fail("takes a mark that is not there");
    std::vector<PickleId> items = pop_last(stack_.size() - marks_.back());
    marks_.pop_back();
    return items;
  }
  PickleValue& top(PickleKind kind, std::string_view expected) {
    if (stack_.size() <= floor()) fail("takes a value that is not there");
    PickleValue& value = pickle_.values[stack_.back()];
    if (value.kind == PickleKind::call) return of_objects_;
    if (value.kind != kind) fail(concat("adds to what is not ", expected));
    return value;
  }

  void append(const std::vector<PickleId>& added) {
    std::vector<PickleId>& items = top(PickleKind::list, "a list").items;
    items.insert(items.end(), added.begin(), added.end());
  }
  void set_items(const std::vector<PickleId>& added) {
    if (added.size() % 2 != 0) fail("adds a key without a value");
    std::vector<PickleId>& items = top(PickleKind::dict, "a dict").items;
    items.insert(items.end(), added.begin(), added.end());
  }

  void put(std::uint64_t slot) {
    if (stack_.size() <= floor()) fail("takes a value that is not there");
    // Picklers number what they keep: so a slot is no greater than the count of opcodes.
    if (slot >= kMaxOpcodes) fail(concat("keeps a value under the number ", slot));
    if (slot >= memo_.size()) memo_.resize(slot + 1);
    if (!memo_[slot]) ++kept_;
    memo_[slot] = stack_.back();
  }
  void get(std::uint64_t slot) {
    if (slot >= memo_.size() || !memo_[slot]) {
      fail(concat("takes value ", slot, ", which has not been kept"));
    }
    stack_.push_back(*memo_[slot]);
  }

  void push_global(std::string_view module, std::string_view name) {
    push({.kind = PickleKind::global, .text = concat(module, '.', name)});
  }
  void push_named_global() {
    const PickleId name = pop();
    const PickleId module = pop();
    if (pickle_[name].kind != PickleKind::string || pickle_[module].kind != PickleKind::string) {
      fail("names a global by what is not a string");
    }
    push_global(pickle_[module].text, pickle_[name].text);
  }

  void call() {
    const PickleId arguments = pop();
    const PickleId function = pop();
    if (pickle_[function].kind != PickleKind::global) fail("calls what is not a global");
    if (pickle_[arguments].kind != PickleKind::tuple) fail("calls with what is not a tuple");
    if (pickle_[function].text != kOrderedDict) {
      return push({.kind = PickleKind::call, .items = {function, arguments}});
    }
    if (!pickle_[arguments].items.empty()) fail("makes an OrderedDict of something");
    push({.kind = PickleKind::dict});
  }

  // What comes with its value in the pickle.
  void carry_out(unsigned char opcode) {
    switch (opcode) {
      case 0x80: {  // PROTO
        const int protocol = static_cast<unsigned char>(take(1)[0]);
        if (protocol < 2 || protocol > 5) fail(concat("protocol ", protocol, ", expected 2 to 5"));
        return;
      }
      case 0x95:  // FRAME
        take(8);
        return;
      case '(':  // MARK
        return marks_.push_back(stack_.size());
      case 'N':  // NONE
        return push({.kind = PickleKind::none});
      case 0x88:  // NEWTRUE
        return push({.kind = PickleKind::boolean, .integer = 1});
      case 0x89:  // NEWFALSE
        return push({.kind = PickleKind::boolean, .integer = 0});
      case 'K':  // BININT1
        return push_integer(concat(take(1), '\0'));
      case 'M':  // BININT2
        return push_integer(concat(take(2), '\0'));
      case 'J':  // BININT
        return push_integer(take(4));
      case 0x8a:  // LONG1
        return push_integer(take_counted(1));
      case 0x8b:  // LONG4
        return push_integer(take_counted(4));
      case 'G':  // BINFLOAT
        take(8);
        return push({.kind = PickleKind::other});
      case 0x8c:  // SHORT_BINUNICODE
        return push_string(take_counted(1));
      case 'X':  // BINUNICODE
        return push_string(take_counted(4));
      case 0x8d:  // BINUNICODE8
        return push_string(take_counted(8));
      case 'C':  // SHORT_BINBYTES
        return push_bytes(take_counted(1));
      case 'B':  // BINBYTES
        return push_bytes(take_counted(4));
      case 0x8e:  // BINBYTES8
        return push_bytes(take_counted(8));
      case 'c': {  // GLOBAL
        const std::string_view module = take_line();
        return push_global(module, take_line());
      }
      default:
        return carry_out_on_stack(opcode);
    }
  }

  // What takes values from the stack, or from those that are kept.
  void carry_out_on_stack(unsigned char opcode) {
    switch (opcode) {
      case ')':  // EMPTY_TUPLE
        return push({.kind = PickleKind::tuple});
      case 0x85:  // TUPLE1
      case 0x86:  // TUPLE2
      case 0x87:  // TUPLE3
        return push({.kind = PickleKind::tuple, .items = pop_last(opcode - 0x84u)});
      case 't':  // TUPLE
        return push({.kind = PickleKind::tuple, .items = pop_to_mark()});
      case ']':  // EMPTY_LIST
        return push({.kind = PickleKind::list});
      case 'a':  // APPEND
        return append(pop_last(1));
      case 'e':  // APPENDS
        return append(pop_to_mark());
      case '}':  // EMPTY_DICT
        return push({.kind = PickleKind::dict});
      case 's':  // SETITEM
        return set_items(pop_last(2));
      case 'u':  // SETITEMS
        return set_items(pop_to_mark());
      case 'q':  // BINPUT
        return put(from_little_endian(take(1)));
      case 'r':  // LONG_BINPUT
        return put(from_little_endian(take(4)));
      case 0x94:  // MEMOIZE
        return put(kept_);
      case 'h':  // BINGET
        return get(from_little_endian(take(1)));
      case 'j':  // LONG_BINGET
        return get(from_little_endian(take(4)));
      case 0x93:  // STACK_GLOBAL
        return push_named_global();
      case 'Q':  // BINPERSID
        return push({.kind = PickleKind::persistent, .items = pop_last(1)});
      case 'R':   // REDUCE
      case 0x81:  // NEWOBJ
        return call();
      case 'b':  // BUILD
        pop();
        top(PickleKind::dict, "an OrderedDict");
        return;
      default:
        fail(concat("opcode '", printable({reinterpret_cast<const char*>(&opcode), 1}),
                    "', which no tensor needs"),
             hint_to_save_tensors(name_));
    }
  }

  void push_integer(std::string_view bytes) {
    const auto integer = to_integer(bytes);
    push({.kind = integer ? PickleKind::integer : PickleKind::other,
          .integer = integer.value_or(0)});
  }
  void push_string(std::string_view text) {
    push({.kind = PickleKind::string, .text = std::string(text)});
  }
  void push_bytes(std::string_view) { push({.kind = PickleKind::other}); }

  std::string_view bytes_;
  const std::string& name_;
  std::size_t offset_ = 0;
  std::size_t at_ = 0;  // of the opcode
  Pickle pickle_;
  PickleValue of_objects_;  // their items, which are passed over
  std::vector<PickleId> stack_;
  std::vector<std::size_t> marks_;  // how high the stack was
  std::vector<std::optional<PickleId>> memo_;
  std::size_t kept_ = 0;
};

}  // namespace

std::string hint_to_save_tensors(const std::string& file, std::string_view object, bool is_member) {
  if (is_member && object == "argparse.Namespace") return {};  // options, beside tensors
  const bool is_array = object.starts_with("numpy.");
  const std::string of_all = concat(
      "{k: v for k, v in getattr(x, 'state_dict', lambda: ", object.empty() ? "x" : "vars(x)",
      ")().items() if torch.is_tensor(v)}");
  const std::string_view saved =
      is_member && is_array ? "{str(k): torch.as_tensor(v) for k, v in dict(x if hasattr(x, "
                              "'keys') else enumerate(x)).items() if hasattr(v, '__array__')}"
      : is_member ? "{str(k): getattr(v, 'state_dict', lambda: v)() for k, v in dict(x if "
                    "hasattr(x, 'keys') else enumerate(x)).items()}"
      : is_array  ? "torch.as_tensor(x)"
                  : std::string_view(of_all);
  return hint_about(file, concat("in Python, if you trust the file: x = torch.load('FILE', "
                                 "weights_only=False); torch.save(",
                                 saved, ", 'FILE.pt')"));
}

Pickle read_pickle(std::string_view bytes, const std::string& name) {
  return Reader(bytes, name).read();
}

}  // namespace lnorm
