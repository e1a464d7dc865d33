#!/bin/sh
# Builds the consumer with lnorm's source as a folder of its own project, and runs it. It is a unity build: what is tested
# is how the projects fit together, not each file.
set -eu
cd "$(dirname "$0")"
cmake -S . -B ../../build/consumer -G Ninja -DCMAKE_BUILD_TYPE=None -DCMAKE_UNITY_BUILD=ON \
  -DLNORM_SOURCE_DIR="$PWD/../.." >/dev/null
cmake --build ../../build/consumer --target consumer
../../build/consumer/consumer
