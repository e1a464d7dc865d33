#!/bin/sh
# Builds the consumer with what pkg-config says of the lnorm that is installed in a folder, and runs it.
#   pkg_config.sh COMPILER PREFIX OUTPUT
set -eu
PKG_CONFIG_PATH=$(dirname "$(find "$2" -name lnorm.pc)")
export PKG_CONFIG_PATH
pkg-config --exists 'lnorm >= 0.7'
# shellcheck disable=SC2046  # they are words
"$1" -std=c++20 $(pkg-config --cflags lnorm) "$(dirname "$0")/main.cpp" $(pkg-config --libs lnorm) -o "$3"
"$3"
