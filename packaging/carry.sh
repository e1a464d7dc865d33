#!/usr/bin/env bash
# Copies the libraries that the files need, and that not every Linux has, into a folder, and their terms into another:
#   packaging/carry.sh LIBRARIES TERMS FILE...
set -euo pipefail
libraries=$1 terms=$2
mkdir -p "$libraries" "$terms"
cp /usr/share/common-licenses/Apache-2.0 "$terms"
# What is in every Linux: manylinux's list, so far as we need it.
ldd "${@:3}" | awk '$2 == "=>" && $1 !~ /^lib(c|m|z|gcc_s|stdc[+][+])[.]so/ { print $3 }' | sort -u |
  while read -r library; do
    cp -L "$library" "$libraries"
    package=$(dpkg-query --search "$(realpath "$library")" | cut -d: -f1)
    cp "/usr/share/doc/$package/copyright" "$terms/copyright.$package"
  done
