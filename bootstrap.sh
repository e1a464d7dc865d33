#!/usr/bin/env bash
# From a bare Debian 12 or 13 to a result, in one command:
#   ./bootstrap.sh demo      installs what is missing, builds, and normalises a file of data/
#   ./bootstrap.sh test      the same with the tests, and passes them
#   ./bootstrap.sh sanitize  the tests once more, by clang with AddressSanitizer and UBSan
#   ./bootstrap.sh fuzz      the fuzzers for 20 seconds each, or ./bootstrap.sh fuzz SECONDS
#   ./bootstrap.sh bench-kernel   throughput of the kernels in memory, beside memcpy and oneDNN
#   ./bootstrap.sh bench-program  time and memory of the program, beside cat, NumPy and PyTorch
set -euo pipefail
cd "$(dirname "$0")"

build_packages=(g++ cmake ninja-build libcli11-dev libhwy-dev libsimdjson-dev libtbb-dev libxtensor-dev
  libzip-dev nlohmann-json3-dev pkgconf)
test_packages=(catch2 libboost-dev)
bench_packages=(hyperfine libbenchmark-dev libdnnl-dev time)

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

show() {
  printf '\n$ %s\n' "$*"
  PATH="$PWD/build/release:$PATH" "$@"
}

case "${1:-}" in
  demo)
    install "${build_packages[@]}"
    build release -DBUILD_TESTING=OFF -DLNORM_BENCHMARKS=OFF
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
    build release -DBUILD_TESTING=ON -DLNORM_BENCHMARKS=OFF
    ctest --preset release
    ;;
  sanitize)
    install_clang
    build sanitize
    ctest --preset sanitize
    ;;
  fuzz)
    install_clang
    # Where the sanitizers' tests are built there is little left to build.
    cmake --preset sanitize >/dev/null
    cmake --build --preset sanitize --target fuzzers
    tests/fuzz/run.sh "${2:-20}"
    ;;
  bench-kernel | bench-program)
    install "${build_packages[@]}" "${bench_packages[@]}"
    build release -DBUILD_TESTING=OFF -DLNORM_BENCHMARKS=ON
    if [ "$1" = bench-kernel ]; then
      build/release/tests/bench/lnorm_bench "${@:2}"
    else
      tests/bench/program.sh
    fi
    ;;
  *)
    sed -n '2,8s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac
