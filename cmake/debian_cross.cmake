# A toolchain file: Debian's cross compiler for LNORM_CROSS_TRIPLET, and libraries that lie in LNORM_CROSS_ROOT as
# they would lie in / on that machine. The compiler's own libraries come with it. bootstrap.sh cross uses this.
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES LNORM_CROSS_TRIPLET LNORM_CROSS_ROOT)

set(CMAKE_SYSTEM_NAME Linux)
string(REGEX REPLACE "-.*" "" CMAKE_SYSTEM_PROCESSOR "${LNORM_CROSS_TRIPLET}")
set(CMAKE_CXX_COMPILER ${LNORM_CROSS_TRIPLET}-g++)
set(CMAKE_LIBRARY_ARCHITECTURE ${LNORM_CROSS_TRIPLET})

set(CMAKE_FIND_ROOT_PATH ${LNORM_CROSS_ROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)

# Where Debian's own compiler looks without being told.
set(CMAKE_CXX_STANDARD_INCLUDE_DIRECTORIES ${LNORM_CROSS_ROOT}/usr/include/${LNORM_CROSS_TRIPLET})

set(library_dir ${LNORM_CROSS_ROOT}/usr/lib/${LNORM_CROSS_TRIPLET})
set(ENV{PKG_CONFIG_LIBDIR} ${library_dir}/pkgconfig:${LNORM_CROSS_ROOT}/usr/share/pkgconfig)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${LNORM_CROSS_ROOT})
# The libraries' own libraries.
set(library_dirs ${library_dir}:${LNORM_CROSS_ROOT}/lib/${LNORM_CROSS_TRIPLET})
set(CMAKE_EXE_LINKER_FLAGS_INIT -Wl,-rpath-link,${library_dirs})
set(CMAKE_SHARED_LINKER_FLAGS_INIT -Wl,-rpath-link,${library_dirs})

set(CMAKE_CROSSCOMPILING_EMULATOR
  qemu-${CMAKE_SYSTEM_PROCESSOR} -L /usr/${LNORM_CROSS_TRIPLET} -E LD_LIBRARY_PATH=${library_dirs})
