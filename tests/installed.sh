#!/usr/bin/env bash
# By the lnorm on the PATH: README's first example, a file that zlib unpacks, and an error among threads.
set -euo pipefail
cd "$(dirname "$0")/.."
fail() {
  echo "installed.sh: $1" >&2
  exit 1
}
shown=$(awk '/^```console$/ { is_in = 1; next } /^```$/ && is_in { exit } is_in' README.md | tail -n +2)  # the first sets PATH
found=$(grep '^[$] ' <<<"$shown" | while IFS= read -r line; do
  echo "$line"
  eval "${line#??}" 2>&1
done)
[ -n "$shown" ] && [ "$found" = "$shown" ] || fail "found
$found
where README has
$shown"
lnorm data/corpus/good/stored.npz:x >/dev/null
head -c 100000 data/page/activations.npy | lnorm --threads 4 2>/dev/null >/dev/null && status=0 || status=$?
[ "$status" = 2 ] || fail "a file that is cut off has exit status $status"
echo "$(lnorm --version | head -n 1) at $(command -v lnorm)"
