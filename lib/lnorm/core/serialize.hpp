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
// Archive is a ByteArchive.
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

// Writes values, or takes them in the order in which they were written.
template <bool takes>
class ByteArchive {
 public:
  static constexpr bool kTakes = takes;
  using Bytes = std::conditional_t<takes, std::string_view, std::string>;

  explicit ByteArchive(Bytes bytes = {}) : bytes_(std::move(bytes)) {}

  template <class... Values>
  void operator()(Values&... values) {
    (carry(values), ...);
  }

  Bytes take() { return std::move(bytes_); }

 private:
  template <class T>
  void carry(T& value) {
    if constexpr (detail::Carried<T, ByteArchive>) {
      value.serialize(*this);
    } else if constexpr (detail::is_vector<T> || std::is_same_v<T, std::string>) {
      const std::size_t size = carried_size(value.size());
      if constexpr (takes) value.resize(size);
      carry_all(value);
    } else if constexpr (detail::is_optional<T>) {
      const bool has_value = carried_size(value ? 1 : 0) != 0;
      if constexpr (takes) value = has_value ? T(std::in_place) : T();
      if (value) carry(*value);
    } else {
      static_assert(detail::is_plain<T>);
      carry_bytes(&value, sizeof value);
    }
  }

  template <class T>
  void carry_all(T& values) {
    using Item = typename T::value_type;
    if constexpr (detail::is_plain<Item> && !detail::Carried<Item, ByteArchive> &&
                  !detail::is_optional<Item>) {
      carry_bytes(values.data(), values.size() * sizeof(Item));
    } else {
      for (Item& item : values) carry(item);
    }
  }

  // Of what is written, or was.
  std::size_t carried_size(std::size_t size) {
    carry_bytes(&size, sizeof size);
    return size;
  }

  void carry_bytes(std::conditional_t<takes, void*, const void*> at, std::size_t size) {
    if (size == 0) return;
    if constexpr (takes) {
      std::memcpy(at, bytes_.data(), size);
      bytes_.remove_prefix(size);
    } else {
      bytes_.append(static_cast<const char*>(at), size);
    }
  }

  Bytes bytes_;
};

template <class... Values>
std::string serialize(Values&... values) {
  ByteArchive<false> archive;
  archive(values...);
  return archive.take();
}

template <class... Values>
void deserialize(std::string_view bytes, Values&... values) {
  ByteArchive<true>{bytes}(values...);
}

}  // namespace lnorm
