#!/usr/bin/env bash
# The tests of the Python package in build/release, its types, and the program against NumPy, by Debian's Python.
set -euo pipefail
cd "$(dirname "$0")/.."
export PYTHONDONTWRITEBYTECODE=1
export PYTHONPATH=$PWD/build/release/python LNORM_PROGRAM=$PWD/build/release/lnorm
/usr/bin/python3 -m pytest -q -p no:cacheprovider python/tests "$@"
/usr/bin/python3 -m mypy --strict --python-version 3.9 --cache-dir=/dev/null build/release/python/lnorm
/usr/bin/python3 tests/random/against_numpy.py build/release/lnorm 15
