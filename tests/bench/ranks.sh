#!/usr/bin/env bash
# How long two ranks of one thread each take, beside one process of two threads and one rank of one thread: 1 GiB, medians
# of five runs in turns. What MPI needs to start is the time of a job on a tensor of one element, and is taken off.
#
#   tests/bench/ranks.sh [FOLDER]     of lnorm and lnorm-mpi; by default build/release
#
# Writes to a new folder in $TMPDIR or /tmp, some 3.3 GB, and takes it away at the end. For files in memory
# TMPDIR=/dev/shm.
set -euo pipefail
bench=$(cd "$(dirname "$0")" && pwd)
. "$bench/npy_header.sh"
programs=$(realpath "${1:-$bench/../../build/release}")
work=$(mktemp -d "${TMPDIR:-/tmp}/lnorm-bench-XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

milliseconds() {
  local start=$EPOCHREALTIME
  "$@" >/dev/null 2>&1 || true
  local end=$EPOCHREALTIME
  echo $(((${end/./} - ${start/./}) / 1000))
}

median() { sort -n | sed -n 3p; }

ranks() { mpirun -n "$1" "$programs/lnorm-mpi" "${@:2}" --threads 1; }
two_threads() { "$programs/lnorm" "$@" --threads 2; }

{ npy_header '<f4' "(1,)"; head -c 4 /dev/zero; } >one.npy
starting=$(for i in 1 2 3 4 5; do milliseconds ranks 2 one.npy -o y.npy; done | median)
echo "starting two ranks: $starting ms"

# Label, then the words of the command.
row() {
  local i first=() second=() third=()
  for i in 0 1 2 3 4 5; do
    first[i]=$(milliseconds two_threads "${@:2}")
    second[i]=$(milliseconds ranks 2 "${@:2}")
    third[i]=$(milliseconds ranks 1 "${@:2}")
  done
  awk -v label="$1" -v starting="$starting" -v a="$(printf '%s\n' "${first[@]:1}" | median)" \
    -v b="$(printf '%s\n' "${second[@]:1}" | median)" -v c="$(printf '%s\n' "${third[@]:1}" | median)" \
    'BEGIN { printf "%-26s %7d %7d %7d %8.2f %8.2f\n", label, a, b - starting, c - starting,
                    (b - starting) / a, (c - starting) / (b - starting) }'
}

printf '%-26s %7s %7s %7s %8s %8s\n' "milliseconds" "lnorm" "N = 2" "N = 1" "N=2/lnorm" "N=1/N=2"
count=$((349525 * 768))
{ npy_header '<i4' "($count,)"; head -c $((count * 4)) /dev/urandom; } | "$programs/lnorm" --dtype float32 >flat.npy
{ npy_header '<f4' "(349525, 768)"; tail -c +129 flat.npy; } >x.npy
rm flat.npy
row apply x.npy -o y.npy
row "apply --axes 0" x.npy --axes 0 -o y.npy
row "one row" x.npy --normalized-shape 349525,768 -o y.npy
row softmax softmax x.npy -o y.npy
row stats stats x.npy
row "stats --histogram" stats x.npy --histogram
"$programs/lnorm" x.npy -o y.npy
# What agrees: mpirun takes two seconds to end where the exit status is not 0.
row "compare, all different" compare x.npy y.npy --max-abs 1e30
row "compare, equal" compare x.npy x.npy
row grad grad x.npy --dy x.npy --dx y.npy --dweight w.npy --dbias b.npy
