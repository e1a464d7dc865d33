# What CPack's DEB generator needs to know, where the libraries are Debian's own.
if(CMAKE_CROSSCOMPILING OR NOT EXISTS /etc/debian_version)
  return()
endif()

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL program runtime development)
if(LNORM_PYTHON)
  list(APPEND CPACK_COMPONENTS_ALL python)
endif()
if(LNORM_MPI)
  list(APPEND CPACK_COMPONENTS_ALL mpi)
endif()
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "The lnorm maintainers <maintainers@users.noreply.a-seed-30270196.example>")
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)

set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME lnorm)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SECTION math)
set(CPACK_COMPONENT_PROGRAM_DESCRIPTION "layer normalization of tensor files
Normalizes tensors over any of their axes, exactly: .npy, .npz, .safetensors
and JSON, from files and pipes of any size. Compares tensors element by
element, and shows what normalization does to every row.")

# The package names of Debian, as in bootstrap.sh.
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME liblnorm-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS
  "liblnorm0 (= ${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}), libhwy-dev, libsimdjson-dev, libtbb-dev, libxtensor-dev, zlib1g-dev")
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION "layer normalization in C and C++, development files
Headers, libraries, CMake and pkg-config files of lnorm: its commands in C on
tensors in memory, and a static library in C++ that normalizes expressions and
containers of xtensor, each result exact and rounded once.")

set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME liblnorm0)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION libs)
# dpkg-gensymbols' file: every symbol is there since the first version of the interface.
file(STRINGS ${PROJECT_SOURCE_DIR}/app/lnorm.h functions REGEX "^LNORM_API")
list(TRANSFORM functions REPLACE ".*(lnorm_[a-z_]+)\\(.*" " \\1@LNORM_0 0.8.0")
list(SORT functions)
list(JOIN functions "\n" functions)
file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/symbols
  "liblnorm.so.0 liblnorm0 #MINVER#\n LNORM_0@LNORM_0 0.8.0\n${functions}\n")
file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/shlibs "liblnorm 0 liblnorm0 (>= ${PROJECT_VERSION})\n")
file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/triggers "activate-noawait ldconfig\n")
foreach(file symbols shlibs triggers)
  list(APPEND CPACK_DEBIAN_RUNTIME_PACKAGE_CONTROL_EXTRA ${CMAKE_CURRENT_BINARY_DIR}/${file})
endforeach()
set(CPACK_COMPONENT_RUNTIME_DESCRIPTION "layer normalization in C, a shared library
The commands of lnorm on tensors in memory: normalizes them over any axes, each
result exact and rounded once, compares them and judges kernels.")

set(CPACK_DEBIAN_MPI_PACKAGE_NAME lnorm-mpi)
set(CPACK_DEBIAN_MPI_PACKAGE_SECTION math)
set(CPACK_DEBIAN_MPI_PACKAGE_RECOMMENDS "openmpi-bin")
set(CPACK_COMPONENT_MPI_DESCRIPTION "layer normalization of tensor files, on several machines
The commands of lnorm for processes that MPI starts: each does a part of a
tensor, and what they write together is what lnorm would have written.")

if(LNORM_PYTHON)
  set(CPACK_DEBIAN_PYTHON_PACKAGE_NAME python3-lnorm)
  set(CPACK_DEBIAN_PYTHON_PACKAGE_SECTION python)
  set(CPACK_DEBIAN_PYTHON_PACKAGE_ARCHITECTURE all)
  set(CPACK_DEBIAN_PYTHON_PACKAGE_SHLIBDEPS OFF)
  set(CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS
    "python3 (>= 3.9), liblnorm0 (= ${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE})")
  set(CPACK_DEBIAN_PYTHON_PACKAGE_RECOMMENDS python3-numpy)
  foreach(script postinst prerm)
    list(APPEND CPACK_DEBIAN_PYTHON_PACKAGE_CONTROL_EXTRA ${CMAKE_CURRENT_SOURCE_DIR}/python/${script})
  endforeach()
  set(CPACK_COMPONENT_PYTHON_DESCRIPTION "layer normalization of tensors in Python, and assertions for kernels
Normalizes arrays of NumPy and tensors of PyTorch, JAX and others, each result
exact and rounded once, and says whether a kernel's output is right.")
endif()

# Their papers.
string(REGEX REPLACE "(^|\n)  " "\\1    " notes "${LNORM_RELEASE_NOTES}")
string(REGEX REPLACE "(^|\n)- " "\\1  * " notes "${notes}")
execute_process(COMMAND ${CMAKE_COMMAND} -E env LC_ALL=C date -uRd ${LNORM_RELEASE_DATE}
  OUTPUT_VARIABLE date OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
set(changelog ${CMAKE_CURRENT_BINARY_DIR}/changelog.Debian)
file(WRITE ${changelog} "lnorm (${PROJECT_VERSION}-1) unstable; urgency=medium\n\n"
  "${notes}\n -- ${CPACK_DEBIAN_PACKAGE_MAINTAINER}  ${date}\n")
execute_process(COMMAND gzip -9nkf ${changelog} COMMAND_ERROR_IS_FATAL ANY)
string(TOUPPER "${CPACK_COMPONENTS_ALL}" components)
foreach(component ${components})
  string(TOLOWER ${component} name)
  install(FILES copyright ${changelog}.gz COMPONENT ${name}
    DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${CPACK_DEBIAN_${component}_PACKAGE_NAME}
    EXCLUDE_FROM_ALL)  # in the packages only
endforeach()
include(CPack)
