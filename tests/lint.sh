#!/usr/bin/env bash
# Checks the format of every file, then runs clang-tidy on the sources of the program and the library that the last change
# touched, or on those that are named, until the time is over.
#   lint.sh [SECONDS [FILE...]]
set -euo pipefail
cd "$(dirname "$0")/.."
until=$(($(date +%s) + ${1:-150}))

git ls-files '*.cpp' '*.hpp' '*.h' | xargs clang-format --dry-run -Werror

# clang-tidy takes the compiler's options from there: g++'s, of each file by itself.
cmake --preset debug -DLNORM_MPI=ON >/dev/null
# clang-tidy reads a header through the first source that includes it.
sources() {
  local file
  while read -r file; do
    case $file in
      *.hpp) git grep -l -F "\"${file#*/}\"" -- 'app/*.cpp' 'lib/*.cpp' | head -n 1 || true ;;
      *) [ ! -f "$file" ] || echo "$file" ;;
    esac
  done < <(if [ $# -gt 0 ]; then printf '%s\n' "$@"; else tests/changed.sh 'app/*.[ch]pp' 'lib/*.[ch]pp'; fi)
}
sources "${@:2}" | awk '!seen[$0]++' |
  xargs -P "$(nproc)" -I '{}' sh -c '
    [ "$(date +%s)" -lt "$0" ] || exit 0
    echo "clang-tidy $1"
    clang-tidy --quiet -p build/debug --extra-arg=-Wno-unknown-warning-option "$1" 2>/dev/null || exit 1' "$until" '{}'
