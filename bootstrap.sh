#!/usr/bin/env bash
# From a bare Debian 12 or 13 to a result, in one command:
#   ./bootstrap.sh demo      installs what is missing, builds, and normalizes a file of data/
#   ./bootstrap.sh test      the same with the tests, and passes them; test system: only those of installation and shells
#   ./bootstrap.sh install [PREFIX]   program, library, manual, completions; into /usr/local, or ~/.local if not root
#   ./bootstrap.sh python    the Python package; the last line is its folder, for PYTHONPATH
#   ./bootstrap.sh python-test   the same, and passes its tests
#   ./bootstrap.sh wheel     the same and the program, as build/lnorm-*.whl for pip, with the libraries that they need;
#                            wheel arm64: for Arm, tried in an emulator
#   ./bootstrap.sh static    the program for other Linux machines, build/lnorm-*.tar.xz
#   ./bootstrap.sh package   Debian packages in build/: lnorm_*.deb, lnorm-mpi_*.deb, python3-lnorm_*.deb, and liblnorm-dev_*.deb
#                            for the library
#   ./bootstrap.sh lint      formatting by clang-format, then clang-tidy on what the last change touched, for 150 seconds, or
#                            ./bootstrap.sh lint SECONDS [FILE...]
#   ./bootstrap.sh sanitize  the tests once more, by clang with AddressSanitizer and UBSan
#   ./bootstrap.sh test-page the pages of lnorm report in a real browser, headless Chromium; pictures in build/page
#   ./bootstrap.sh mpi       lnorm-mpi, the program for several machines, with Open MPI, and its tests on 3 ranks here
#   ./bootstrap.sh fuzz      the fuzzers for 20 seconds each, or ./bootstrap.sh fuzz SECONDS
#   ./bootstrap.sh cross arm64    builds for Arm, or s390x (big-endian), and compares what each kernel there writes, in an
#                                 emulator, with what this machine writes, byte for byte
#   ./bootstrap.sh fresh trixie   runs demo and test on a bare Debian 13 of its own, or fresh bookworm on a bare Debian 12;
#                                 or fresh trixie COMMAND...: demo, test, 'test system', bytes (the program there writes what
#                                 the one here writes), python-test (with PyTorch), wheel-here (the wheel of this system runs
#                                 there), wheel and static, which are tried in systems without our libraries
#   ./bootstrap.sh bench-kernel   throughput of the kernels in memory, beside memcpy and oneDNN
#   ./bootstrap.sh bench-mpi      two ranks beside two threads
#   ./bootstrap.sh bench-program  time and memory of the program, beside cat, NumPy and PyTorch; then how
#                                 far each is from the speed that is aimed at
set -euo pipefail
caller=$PWD
cd "$(dirname "$0")"

build_packages=(g++ cmake ninja-build libboost-dev libcli11-dev libhwy-dev libjs-vega libprotozero-dev
  libsimdjson-dev libtbb-dev libxtensor-dev nlohmann-json3-dev pkgconf zlib1g-dev)
test_packages=(catch2 fish libmpfr-dev mandoc zsh)
page_packages=(chromium chromium-driver fonts-dejavu-core python3 python3-pil
  python3-selenium)
mpi_packages=(libopenmpi-dev openmpi-bin)
package_packages=(dpkg-dev file lintian)
wheel_packages=(patchelf python3-venv python3-wheel)
static_packages=(patchelf xz-utils)
lint_packages=(clang-format clang-tidy)
python_packages=(python3 python3-numpy)
python_test_packages=(mypy python3-pandas python3-pytest python3-torch)
bench_packages=(hyperfine libbenchmark-dev libdnnl-dev python3 time unzip)

# Prints those of the packages that are not installed.
missing() {
  local package
  for package in "$@"; do
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)" = installed ] ||
      echo "$package"
  done
}

install() {
  if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    {
      echo "bootstrap.sh: there is no apt-get here, which is what this script installs with."
      echo "Needed, by their Debian names: ${build_packages[*]} ${test_packages[*]}"
      echo "With these installed: cmake --preset release && cmake --build --preset release"
    } >&2
    exit 2
  fi
  local packages
  mapfile -t packages < <(missing "$@")
  [ ${#packages[@]} -gt 0 ] || return 0

  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null; then
      echo "bootstrap.sh: run as root, or install these first: ${packages[*]}" >&2
      exit 2
    fi
    as_root=(sudo)
  fi
  echo "Installing ${packages[*]}"
  "${as_root[@]}" apt-get update -qq || echo "bootstrap.sh: apt-get update failed, going on" >&2
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends "${packages[@]}" >/dev/null
}

install_clang() {
  install "${build_packages[@]}" "${test_packages[@]}" clang
  install "libclang-rt-$(clang++ -dumpversion | cut -d. -f1)-dev"
}

build() {  # preset, then options for cmake
  local preset=$1
  shift
  cmake --preset "$preset" "$@" >/dev/null
  cmake --build --preset "$preset"
}

# One build, which compiles the library once, serves all commands but static, sanitize, fuzz and cross.
configure_release() {  # options for cmake
  cmake --preset release -DBUILD_TESTING=OFF -DLNORM_BENCHMARKS=OFF -DLNORM_MPI=OFF -DLNORM_PYTHON=OFF \
    -DLNORM_ZSH_COMPLETIONS=zsh/site-functions -DCMAKE_INSTALL_LIBDIR=lib "$@" >/dev/null
}

build_release() {  # options for cmake
  configure_release "$@"
  cmake --build --preset release
}

build_python() {  # options for cmake
  build_release -DLNORM_PYTHON=ON "$@"
}

# Downloads the libraries of another architecture and unpacks them into a folder. apt works on lists and states of
# its own here: the machine's stay as they are, nothing is installed, and no root is needed.
unpack_libraries() {  # architecture, folder
  [ ! -e "$2/has-python" ] || return 0
  local apt package needed
  mapfile -t needed < <(printf '%s\n' "${build_packages[@]}" python3 | grep -E '^lib|^zlib|json|python')
  apt=$(mktemp -d)
  mkdir -p "$apt"/{state/lists/partial,cache/archives/partial}
  touch "$apt/status"
  cat >"$apt/apt.conf" <<END
APT::Architecture "$1";
APT::Architectures { "$1"; };
APT::Sandbox::User "root";
Acquire::Languages "none";
Dir::State "$apt/state";
Dir::State::status "$apt/status";
Dir::Cache "$apt/cache";
END
  echo "Unpacking the libraries of $1 into $2"
  APT_CONFIG=$apt/apt.conf apt-get update -qq || echo "bootstrap.sh: apt-get update failed, going on" >&2
  APT_CONFIG=$apt/apt.conf apt-get install -y -qq --no-install-recommends --download-only \
    "${needed[@]}" >/dev/null
  mkdir -p "$2"
  for package in "$apt"/cache/archives/*.deb; do
    case ${package##*/} in
      gcc-* | libgcc-* | libstdc++* | libc6* | libc-dev* | linux-libc*) ;;  # the cross compiler brings its own
      *) dpkg -x "$package" "$2" ;;
    esac
  done
  rm -rf "$apt"
  touch "$2/has-python"
}

# What a build for another architecture needs, and `emulator`, which runs what it makes.
prepare_cross() {  # architecture, triplet
  install "${build_packages[@]}" "g++-$2" python3 qemu-user
  local sysroot=$PWD/build/cross-$1/sysroot
  unpack_libraries "$1" "$sysroot"
  emulator=("qemu-${2%%-*}" -L "/usr/$2" -E "LD_LIBRARY_PATH=$sysroot/usr/lib/$2:$sysroot/lib/$2")
}

show() {
  printf '\n$ %s\n' "$*"
  PATH="$PWD/build/release:$PATH" "$@"
}

case "${1:-}" in
  demo)
    install "${build_packages[@]}"
    build_release
    show cat data/sample.json
    show lnorm data/sample.json --to text
    show lnorm data/sample.json --axes -2,-1 --unbiased --eps 0 --to text
    cat <<'END'

What to try next:
  export PATH="$PWD/build/release:$PATH"
  lnorm data/sample.npy -o /tmp/y.npy               # .npy in, .npy out
  cat data/sample.npy | lnorm --to json             # in a pipe
  lnorm data/sample.npy --weight '[1, 1, 2, 2]' --bias 0.5 --save-mean /tmp/mean.json
  lnorm apply --help
END
    ;;
  test)
    install "${build_packages[@]}" "${test_packages[@]}"
    case "${2:-all}" in
      all)
        build_release -DBUILD_TESTING=ON
        ctest --preset release
        ;;
      system)
        configure_release -DBUILD_TESTING=ON
        cmake --build --preset release --target lnorm_app lnorm_generated lnorm_system_tests
        ctest --preset release -L system
        ;;
      *)
        echo "bootstrap.sh: test takes nothing, or system, found $2" >&2
        exit 2
        ;;
    esac
    ;;
  install)
    prefix=/usr/local
    [ "$(id -u)" -eq 0 ] || prefix=$HOME/.local
    prefix=${2:-$prefix}
    case $prefix in
      -*)
        echo "bootstrap.sh: install takes a folder, found $prefix" >&2
        exit 2
        ;;
      /*) ;;
      *) prefix=$caller/$prefix ;;
    esac
    install "${build_packages[@]}"
    build_release
    cmake --install build/release --prefix "$prefix" >/dev/null
    echo "Installed into $prefix: bin/lnorm, its manual and completions, and the library for find_package(lnorm)."
    case ":$PATH:" in
      *":$prefix/bin:"*) ;;
      *) echo "For your shell: export PATH=\"$prefix/bin:\$PATH\"" ;;
    esac
    case $prefix in
      /usr/local) ;;  # where zsh looks of itself
      *) echo "For zsh, before compinit: fpath+=(\"$prefix/share/zsh/site-functions\")" ;;
    esac
    ;;
  python)
    install "${build_packages[@]}" "${python_packages[@]}"
    build_python
    echo "$PWD/build/release/python"
    ;;
  python-test)
    install "${build_packages[@]}" "${python_packages[@]}" "${python_test_packages[@]}"
    build_python
    python/test.sh
    ;;
  wheel)
    install "${build_packages[@]}" "${python_packages[@]}" "${wheel_packages[@]}"
    case "${2:-}" in
      "")
        build_python
        rm -f build/*"_$(uname -m).whl"
        packaging/wheel.py
        ;;
      arm64)
        prepare_cross arm64 aarch64-linux-gnu
        build cross-arm64 -DLNORM_PYTHON=ON
        cmake --build build/cross-arm64 --target lnorm_generated
        rm -f build/*_aarch64.whl
        packaging/wheel.py build/cross-arm64 aarch64
        tests/cross/wheel.sh build/*_aarch64.whl build/cross-arm64/sysroot "${emulator[@]}"
        ;;
      *)
        echo "bootstrap.sh: wheel is for this machine, or for arm64, found $2" >&2
        exit 2
        ;;
    esac
    ls build/*.whl
    ;;
  static)
    install "${build_packages[@]}" "${static_packages[@]}"
    build static
    rm -f build/*.tar.xz
    packaging/archive.sh
    ls build/*.tar.xz
    ;;
  package)
    install "${build_packages[@]}" "${mpi_packages[@]}" "${python_packages[@]}" "${package_packages[@]}"
    build_python -DLNORM_MPI=ON -DLNORM_ZSH_COMPLETIONS=zsh/vendor-completions \
      "-DCMAKE_INSTALL_LIBDIR=lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH)"
    rm -f build/*.deb
    (umask 022 && cpack --config build/release/CPackConfig.cmake -B build/release/packages >/dev/null)
    mv build/release/packages/*.deb build/
    lintian --fail-on error --suppress-tags debian-changelog-line-too-long,initial-upload-closes-no-bugs build/*.deb
    ls build/*.deb
    ;;
  lint)
    install "${build_packages[@]}" "${test_packages[@]}" "${mpi_packages[@]}" "${lint_packages[@]}"
    tests/lint.sh "${2:-150}" "${@:3}"
    ;;
  sanitize)
    install_clang
    build sanitize
    ctest --preset sanitize
    ;;
  test-page)
    install "${build_packages[@]}" "${page_packages[@]}"
    cmake --preset release >/dev/null
    cmake --build --preset release --target lnorm_app
    tests/page/page_test.py build/release/lnorm build/page
    ;;
  mpi)
    install "${build_packages[@]}" "${test_packages[@]}" "${mpi_packages[@]}"
    build_release -DBUILD_TESTING=ON -DLNORM_MPI=ON
    ctest --preset release -L mpi
    ;;
  fuzz)
    install_clang
    # Where the sanitizers' tests are built there is little left to build.
    cmake --preset sanitize >/dev/null
    cmake --build --preset sanitize --target fuzzers
    tests/fuzz/run.sh "${2:-20}"
    ;;
  cross)
    case "${2:-}" in
      arm64) triplet=aarch64-linux-gnu ;;
      s390x) triplet=s390x-linux-gnu ;;
      *)
        echo "bootstrap.sh: cross is for arm64 or s390x" >&2
        exit 2
        ;;
    esac
    cmake --preset release >/dev/null
    cmake --build --preset release --target lnorm_app
    prepare_cross "$2" "$triplet"
    build "cross-$2"
    tests/cross/same_bytes.py --cases 60 build/release/lnorm "${emulator[@]}" "build/cross-$2/lnorm"
    ;;
  fresh)
    case "${2:-}" in
      bookworm | trixie) ;;
      *)
        echo "bootstrap.sh: fresh is for bookworm or trixie" >&2
        exit 2
        ;;
    esac
    for command in "${@:3}"; do
      case $command in
        demo | test | "test system" | bytes | python-test | wheel | wheel-here | static) ;;
        *)
          echo "bootstrap.sh: fresh runs demo, test, 'test system', bytes, python-test, wheel, wheel-here or static, found $command" >&2
          exit 2
          ;;
      esac
    done
    [ $# -gt 2 ] || set -- "$@" demo test
    if [ "$(id -u)" -ne 0 ]; then
      echo "bootstrap.sh: fresh installs a system into a folder: only root can" >&2
      exit 2
    fi
    install debootstrap git
    if ! command -v debootstrap >/dev/null; then
      echo "bootstrap.sh: fresh needs debootstrap, which is not on the PATH" >&2
      exit 2
    fi
    tests/fresh.sh "${@:2}"
    ;;
  bench-mpi)
    install "${build_packages[@]}" "${mpi_packages[@]}"
    build_release -DLNORM_MPI=ON
    tests/bench/ranks.sh
    ;;
  bench-kernel | bench-program)
    install "${build_packages[@]}" "${bench_packages[@]}"
    build_release -DLNORM_BENCHMARKS=ON
    if [ "$1" = bench-kernel ]; then
      build/release/tests/bench/lnorm_bench "${@:2}"
    else
      tests/bench/program.sh
      tests/bench/ratios.sh
    fi
    ;;
  *)
    sed -n '2,28s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac
