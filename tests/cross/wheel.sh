#!/usr/bin/env bash
# Runs the package of a wheel for another architecture by Python of that architecture in an emulator, and compares what it gives with
# what the program of this machine writes: tests/cross/wheel.sh WHEEL SYSROOT EMULATOR...
set -euo pipefail
cd "$(dirname "$0")/../.."
wheel=$1 sysroot=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m zipfile -e "$wheel" "$folder"
interpreter=$(find "$sysroot/usr/bin" -name 'python3.[0-9]*' -type f | sort | head -n 1)
found=$(PYTHONHOME=$sysroot/usr PYTHONPATH=$folder PYTHONDONTWRITEBYTECODE=1 "${@:3}" "$interpreter" -c '
import lnorm
x = [[1.0, 2.0, 4.0], [3.0, 3.0, 9.0]]
y = lnorm.layer_norm(x, eps=0)
print(y.tolist() if hasattr(y, "tolist") else y)
verdict = lnorm.check(x, y, eps=0)
print(verdict.verdict)
')
expected=$(echo '[[1, 2, 4], [3, 3, 9]]' | build/release/lnorm --eps 0 --to json | sed 's/,/, /g')
[ "$found" = "$expected
correctly rounded" ] || {
  echo "wheel.sh: found $found, expected $expected" >&2
  exit 1
}
echo "$(basename "$wheel") in $("${@:3}" "$interpreter" --version)"
