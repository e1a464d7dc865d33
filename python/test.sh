#!/usr/bin/env bash
# The tests of the Python package in build/python, and its types, by Debian's Python.
set -euo pipefail
cd "$(dirname "$0")/.."
export PYTHONDONTWRITEBYTECODE=1
export PYTHONPATH=$PWD/build/python/python LNORM_PROGRAM=$PWD/build/python/lnorm
/usr/bin/python3 -m pytest -q -p no:cacheprovider python/tests "$@"
/usr/bin/python3 -m mypy --strict --cache-dir=/dev/null build/python/python/lnorm
