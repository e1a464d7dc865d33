# How the library is installed, and found: by find_package(lnorm) and by pkg-config.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

# A header and all of ours that it includes.
function(included_headers header variable)
  if(header IN_LIST ${variable})
    return()
  endif()
  list(APPEND ${variable} ${header})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${header})
  file(STRINGS ${header} lines REGEX "^#include \"lnorm/")
  foreach(line ${lines})
    string(REGEX MATCH "lnorm/[^\"]+" included "${line}")
    included_headers(${included} ${variable})
  endforeach()
  set(${variable} ${${variable}} PARENT_SCOPE)
endfunction()
included_headers(lnorm/xtensor.hpp headers)

target_include_directories(lnorm INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_sources(lnorm PUBLIC FILE_SET HEADERS BASE_DIRS ${CMAKE_CURRENT_SOURCE_DIR} FILES ${headers})
install(TARGETS lnorm EXPORT lnorm
  ARCHIVE COMPONENT development
  FILE_SET HEADERS COMPONENT development)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/lnorm)
set(made ${CMAKE_CURRENT_BINARY_DIR}/packaging)
install(EXPORT lnorm NAMESPACE lnorm:: FILE lnorm-targets.cmake
  DESTINATION ${package_dir} COMPONENT development)
# lnorm::lnorm is the library in C++, lnorm::c the shared one in C, which needs no other to compile with.
file(WRITE ${made}/lnorm-config.cmake [[
include(${CMAKE_CURRENT_LIST_DIR}/lnorm-c-targets.cmake OPTIONAL)
if(NOT "${lnorm_FIND_COMPONENTS}" STREQUAL "c")
  include(CMakeFindDependencyMacro)
  find_dependency(hwy)
  find_dependency(simdjson)
  find_dependency(TBB)
  find_dependency(xtensor)
  find_dependency(ZLIB)
  include(${CMAKE_CURRENT_LIST_DIR}/lnorm-targets.cmake)
endif()
foreach(component IN LISTS lnorm_FIND_COMPONENTS)
  if(lnorm_FIND_REQUIRED_${component} AND NOT TARGET lnorm::${component})
    set(lnorm_FOUND FALSE)
    set(lnorm_NOT_FOUND_MESSAGE "lnorm has no component ${component}, expected c or lnorm")
  endif()
endforeach()
]])
# Before 1.0 a minor version may change anything.
write_basic_package_version_file(${made}/lnorm-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${made}/lnorm-config.cmake ${made}/lnorm-config-version.cmake
  DESTINATION ${package_dir} COMPONENT development)

# From the file's own place, so that --prefix needs no other file. The library is static: what it needs is
# linked to as well.
file(RELATIVE_PATH prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" prefix "${prefix}")
file(CONFIGURE OUTPUT ${made}/lnorm.pc @ONLY CONTENT [[
prefix=${pcfiledir}/@prefix@

Name: lnorm
Description: Layer normalization of xtensor's expressions and containers, in C++20
Version: @PROJECT_VERSION@
Requires: libhwy simdjson tbb xtensor zlib
Cflags: -I${prefix}/@CMAKE_INSTALL_INCLUDEDIR@
Libs: -Wl,--as-needed -L${prefix}/@CMAKE_INSTALL_LIBDIR@ -l:liblnorm.a
]])
file(CONFIGURE OUTPUT ${made}/lnorm-c.pc @ONLY CONTENT [[
prefix=${pcfiledir}/@prefix@
libdir=${prefix}/@CMAKE_INSTALL_LIBDIR@

Name: lnorm-c
Description: The commands of lnorm on tensors in memory, in C
Version: @PROJECT_VERSION@
Cflags: -I${prefix}/@CMAKE_INSTALL_INCLUDEDIR@
Libs: -L${libdir} -llnorm
]])
install(FILES ${made}/lnorm.pc ${made}/lnorm-c.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
