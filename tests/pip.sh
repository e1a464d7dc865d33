#!/usr/bin/env bash
# pip installs what it is given into a venv of its own, without a network, and what README shows runs there:
#   tests/pip.sh build/lnorm-*.whl
#   tests/pip.sh --no-build-isolation .
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
/usr/bin/python3 -m venv --system-site-packages "$folder/venv"
export PATH=$folder/venv/bin:$PATH
pip install --quiet --no-index "$@"
tests/installed.sh
python tests/installed.py
[ "$(python -m lnorm --version)" = "$(lnorm --version)" ]
