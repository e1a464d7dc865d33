#pragma once

#include <cstddef>
#include <new>
#include <utility>
#include <vector>

namespace lnorm {

// Leaves new elements as they are: to clear what is written over takes time, and touches memory.
template <class T>
struct WithoutClearing : std::allocator<T> {
  template <class U>
  struct rebind {
    using other = WithoutClearing<U>;
  };
  template <class U>
  void construct(U* at) noexcept {
    ::new (static_cast<void*>(at)) U;
  }
  template <class U, class... Arguments>
  void construct(U* at, Arguments&&... arguments) {
    ::new (static_cast<void*>(at)) U(std::forward<Arguments>(arguments)...);
  }
};

using RawBytes = std::vector<std::byte, WithoutClearing<std::byte>>;

}  // namespace lnorm
