#!/usr/bin/env bash
# Packs what build/static installs, and the libraries that Debian has as shared ones only.
set -euo pipefail
cd "$(dirname "$0")/.."
version=$(sed -n 's/^CMAKE_PROJECT_VERSION:.*=//p' build/static/CMakeCache.txt)
name=lnorm-$version-linux-$(uname -m)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
umask 022
cmake --install build/static --component program --strip --prefix "$folder/$name" >/dev/null
program=$folder/$name/bin/lnorm
packaging/carry.sh "$folder/$name/lib/lnorm" "$folder/$name/share/doc/lnorm" "$program"
# shellcheck disable=SC2016  # the loader knows ORIGIN
patchelf --set-rpath '$ORIGIN/../lib/lnorm' "$program"
tar -C "$folder" --owner=0 --group=0 -cJf "build/$name.tar.xz" "$name"
