#!/usr/bin/env bash
# pip installs what it is given into a venv of its own, without a network, and what README shows runs there:
#   tests/pip.sh build/lnorm-*.whl
#   tests/pip.sh --no-build-isolation .
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# The name of a wheel says which glibc it needs. Nothing in it needs a newer one, and something needs that one.
for file in "$@"; do
  [[ $file == *.whl ]] && command -v objdump >/dev/null || continue
  said=$(sed -n 's/.*-py3-none-manylinux_2_\([0-9]*\)_.*[.]whl$/\1/p' <<<"$file")
  /usr/bin/python3 -m zipfile -e "$file" "$folder/wheel"
  found=$(find "$folder/wheel" -type f \( -name '*.so*' -o -path '*/scripts/*' \) -exec objdump -T {} + |
    sed -n 's/.*(GLIBC_2[.]\([0-9]*\).*/\1/p' | sort -n | tail -n 1)
  [ -n "$said" ] && [ "$found" = "$said" ] || {
    echo "pip.sh: $file needs glibc 2.$found" >&2
    exit 1
  }
done

/usr/bin/python3 -m venv --system-site-packages "$folder/venv"
export PATH=$folder/venv/bin:$PATH
pip install --quiet --no-index "$@"
tests/installed.sh
python tests/installed.py
[ "$(python -m lnorm --version)" = "$(lnorm --version)" ]
