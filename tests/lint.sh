#!/usr/bin/env bash
# The format of every file; then what clang-tidy says of the program's and the library's sources, the last
# changed first, for as long as there is time: all of them take half an hour.
#   lint.sh [SECONDS]
set -euo pipefail
cd "$(dirname "$0")/.."
until=$(($(date +%s) + ${1:-150}))

git ls-files '*.cpp' '*.hpp' | xargs clang-format --dry-run -Werror

# clang-tidy takes the compiler's options from there: g++'s, of each file by itself.
cmake --preset debug -DLNORM_MPI=ON >/dev/null
git log --format= --name-only --no-renames -- 'app/*.cpp' 'lib/*.cpp' | awk '!seen[$0]++' |
  while read -r file; do [ ! -f "$file" ] || echo "$file"; done |
  xargs -P "$(nproc)" -I '{}' sh -c '
    [ "$(date +%s)" -lt "$0" ] || exit 0
    echo "clang-tidy $1"
    clang-tidy --quiet -p build/debug --extra-arg=-Wno-unknown-warning-option "$1" 2>/dev/null || exit 1' "$until" '{}'
