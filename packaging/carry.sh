#!/usr/bin/env bash
# Copies the libraries that the files need, and that not every Linux has, into a folder, and their terms into another:
#   packaging/carry.sh LIBRARIES TERMS FILE...
# For another architecture SYSROOT is the folder of its libraries, of the same Debian as this machine.
set -euo pipefail
libraries=$1 terms=$2 root=${SYSROOT:-}
mkdir -p "$libraries" "$terms"
cp /usr/share/common-licenses/Apache-2.0 "$terms"

# Which libraries the files need, and these in turn, with where they are.
needed() {
  if [ -z "$root" ]; then
    ldd "$@" | awk '$2 == "=>" { print $1, $3 }'
    return
  fi
  local file name
  for file in "$@"; do
    readelf -d "$file" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | while read -r name; do
      file=$(find "$root/usr/lib" "$root/lib" -name "$name" 2>/dev/null | sed -n 1p)
      [ -z "$file" ] || echo "$name $file"
      [ -z "$file" ] || needed "$file"
    done
  done
}

# The package of a file: of another architecture, that of the same file here.
package_of() {
  dpkg-query --search "*/$(basename "$(realpath "$1")")" | sed -n "1s/:.*//p"
}

# What is in every Linux: manylinux's list, so far as we need it.
needed "${@:3}" | awk '$1 !~ /^(lib(c|m|z|gcc_s|stdc[+][+])|ld-linux.*)[.]so/ { print $2 }' | sort -u |
  while read -r library; do
    cp -L "$library" "$libraries"
    package=$(package_of "$library")
    cp "$root/usr/share/doc/$package/copyright" "$terms/copyright.$package"
  done
