#include "lnorm/io/zip/libzip.hpp"

#include <dlfcn.h>

#include <type_traits>

#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"

namespace lnorm {

namespace {

// LNORM_LIBZIP: the name under which that libzip is loaded whose header this is compiled with.
LibZip load() {
  void* const library = dlopen(LNORM_LIBZIP, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    throw SystemError(concat("libzip, which reads .npz, cannot be loaded: ", dlerror()));
  }
  LibZip zip{};
  const auto find = [&](auto& function, const char* name) {
    void* const symbol = dlsym(library, name);
    if (symbol == nullptr) throw SystemError(concat(LNORM_LIBZIP, " has no function ", name));
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(symbol);
  };
#define LNORM_FIND(function) find(zip.function, #function);
  LNORM_LIBZIP_FUNCTIONS(LNORM_FIND)
#undef LNORM_FIND
  return zip;
}

}  // namespace

const LibZip& libzip() {
  static const LibZip loaded = load();
  return loaded;
}

}  // namespace lnorm
