#!/bin/sh
# Compiles the example of docs/c.md as strict C99 with what pkg-config says of the lnorm that is installed in a folder, runs it, and
# compares what it prints with what the document shows.
#   c_example.sh COMPILER PREFIX OUTPUT
set -eu
document=$(dirname "$0")/../../docs/c.md
PKG_CONFIG_PATH=$(dirname "$(find "$2" -name lnorm-c.pc)")
export PKG_CONFIG_PATH
block() { awk -v start="\`\`\`$1" '$0 == start { is_in = 1; next } /^```$/ && is_in { exit } is_in' "$document"; }
block c >"$3.c"
# shellcheck disable=SC2046  # they are words
"$1" -std=c99 -pedantic -Wall -Wextra -Werror $(pkg-config --cflags lnorm-c) "$3.c" $(pkg-config --libs lnorm-c) -o "$3"
block text >"$3.expected"
LD_LIBRARY_PATH=$(pkg-config --variable=libdir lnorm-c) "$3" | diff "$3.expected" -
