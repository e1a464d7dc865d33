#pragma once

#include <cstddef>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

// Values as bytes, for another process of the same program on a machine of the same kind. A class that is more than plain
// numbers names its members once, for both ways:
//
//   template <class Archive> void serialize(Archive& archive) { archive(count, values); }
//
// Archive is Serializer or Deserializer.
namespace lnorm {

namespace detail {

template <class T>
inline constexpr bool is_vector = false;
template <class T>
inline constexpr bool is_vector<std::vector<T>> = !std::is_same_v<T, bool>;
template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;

template <class T, class Archive>
concept Carried = requires(T& value, Archive& archive) {
  value.serialize(archive);
};

template <class T>
inline constexpr bool is_plain = std::is_trivially_copyable_v<T> && !std::is_pointer_v<T>;

}  // namespace detail

class Serializer {
 public:
  static constexpr bool kTakes = false;  // values

  template <class... Values>
  void operator()(Values&... values) {
    (add(values), ...);
  }

  std::string take() { return std::move(bytes_); }

 private:
  template <class T>
  void add(T& value) {
    if constexpr (detail::Carried<T, Serializer>) {
      value.serialize(*this);
    } else if constexpr (detail::is_vector<T> || std::is_same_v<T, std::string>) {
      add_size(value.size());
      add_all(value);
    } else if constexpr (detail::is_optional<T>) {
      add_size(value ? 1 : 0);
      if (value) add(*value);
    } else {
      static_assert(detail::is_plain<T>);
      add_bytes(&value, sizeof value);
    }
  }

  template <class T>
  void add_all(T& values) {
    using Item = typename T::value_type;
    if constexpr (detail::is_plain<Item> && !detail::Carried<Item, Serializer> &&
                  !detail::is_optional<Item>) {
      add_bytes(values.data(), values.size() * sizeof(Item));
    } else {
      for (Item& item : values) add(item);
    }
  }

  void add_size(std::size_t size) { add_bytes(&size, sizeof size); }
  void add_bytes(const void* from, std::size_t size) {
    bytes_.append(static_cast<const char*>(from), size);
  }

  std::string bytes_;
};

// Reads the values in the order in which they were written.
class Deserializer {
 public:
  static constexpr bool kTakes = true;

  explicit Deserializer(std::string_view bytes) : bytes_(bytes) {}

  template <class... Values>
  void operator()(Values&... values) {
    (take(values), ...);
  }

 private:
  template <class T>
  void take(T& value) {
    if constexpr (detail::Carried<T, Deserializer>) {
      value.serialize(*this);
    } else if constexpr (detail::is_vector<T> || std::is_same_v<T, std::string>) {
      value.resize(take_size());
      take_all(value);
    } else if constexpr (detail::is_optional<T>) {
      value.reset();
      if (take_size() != 0) take(value.emplace());
    } else {
      static_assert(detail::is_plain<T>);
      take_bytes(&value, sizeof value);
    }
  }

  template <class T>
  void take_all(T& values) {
    using Item = typename T::value_type;
    if constexpr (detail::is_plain<Item> && !detail::Carried<Item, Deserializer> &&
                  !detail::is_optional<Item>) {
      take_bytes(values.data(), values.size() * sizeof(Item));
    } else {
      for (Item& item : values) take(item);
    }
  }

  std::size_t take_size() {
    std::size_t size = 0;
    take_bytes(&size, sizeof size);
    return size;
  }
  void take_bytes(void* to, std::size_t size) {
    if (size == 0) return;
    std::memcpy(to, bytes_.data(), size);
    bytes_.remove_prefix(size);
  }

  std::string_view bytes_;
};

template <class... Values>
std::string serialize(Values&... values) {
  Serializer packer;
  packer(values...);
  return packer.take();
}

template <class... Values>
void deserialize(std::string_view bytes, Values&... values) {
  Deserializer unpacker(bytes);
  unpacker(values...);
}

}  // namespace lnorm
