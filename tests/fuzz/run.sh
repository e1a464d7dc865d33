#!/usr/bin/env bash
# Runs every fuzzer for so many seconds, one on each processor, in a folder of its own: the seeds stay as they are. Fails if one finds
# something, and says where the input is.
#   tests/fuzz/run.sh SECONDS [TARGET...]
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
seconds=$1
shift
targets=("$@")
[ ${#targets[@]} -gt 0 ] || targets=(npy npz safetensors torch onnx gguf json program)

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export TMPDIR=$scratch  # where runs of the program write files

bytes() {
  # shellcheck disable=SC2059  # the numbers are the format
  printf "$(printf '\\x%02x' "$@")"
}

# For the program, files of the corpus get two command lines each, of which one is drawn.
seed_program() {
  local file number=0
  for file in "$root"/data/corpus/{good,bad}/*; do
    [ "$(stat -c %s "$file")" -le 2048 ] || continue
    { bytes $((number % 36)) && cat "$file"; } >"$1/corpus_${file##*/}"
    { bytes $((128 + number % 5)) 5 0 $((number * 7 % 38)) $((number % 11)) $((number * 11 % 38)) \
      $((number % 13)) && cat "$file"; } >"$1/drawn_${file##*/}"
    number=$((number + 1))
  done
}

# Quick to allocate, which is most of what a small input costs.
export ASAN_OPTIONS=malloc_context_size=4:quarantine_size_mb=8

fuzz() {  # target
  local target=$1 seeds=$scratch/$1 log=$scratch/$1.log
  mkdir "$seeds"
  cp "$root/data/fuzz/$target"/* "$seeds"
  case $target in
    program) seed_program "$seeds" ;;
    torch) find "$root"/data/torch -name "*.pt" -size -8k -exec cp {} "$seeds" \; ;;
    onnx) cp "$root"/data/onnx/*.pb "$seeds" ;;
    gguf) cp "$root"/data/gguf/*.gguf "$seeds" ;;
    *) find "$root"/data/corpus -name "*.$target" -size -8k -exec cp {} "$seeds" \; ;;
  esac
  local status=0
  "$root/build/sanitize/tests/fuzz_$target" "$seeds" -max_total_time="$seconds" -max_len=4096 -timeout=10 \
    -rss_limit_mb=1024 -artifact_prefix="$root/build/sanitize/found_${target}_" -print_final_stats=1 \
    >"$log" 2>&1 || status=1
  echo "fuzz_$target, $seconds s: $(grep -E 'number_of_executed_units|peak_rss' "$log" | tr -s '\n ' ' ')"
  if [ "$status" -ne 0 ]; then
    grep -v '^#' "$log" | tail -60 >&2
    echo "fuzz_$target has found something: build/sanitize/found_${target}_*" >&2
  fi
  return "$status"
}
export -f fuzz seed_program bytes
export root seconds scratch
printf '%s\n' "${targets[@]}" | xargs -P "$(nproc)" -I '{}' bash -c 'set -euo pipefail; fuzz {}'
