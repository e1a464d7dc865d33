#!/usr/bin/env bash
# Installs the Debian packages of build/ into a fresh folder, and runs what is there.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fail() {
  echo "package.sh: $1" >&2
  exit 1
}

# apt finds all that the packages depend on.
apt-get install --simulate ./build/lnorm_*.deb ./build/liblnorm0_*.deb ./build/python3-lnorm_*.deb >/dev/null

mkdir -p "$folder"/var/lib/dpkg/{info,updates}
touch "$folder/var/lib/dpkg/status"
dpkg --instdir="$folder" --admindir="$folder/var/lib/dpkg" --log=/dev/null --force-depends --force-not-root \
  --path-include='/usr/share/*' --install build/lnorm_*.deb build/lnorm-mpi_*.deb build/liblnorm-dev_*.deb >/dev/null 2>&1 || fail "dpkg does not install the packages"
# These have scripts, which need a system in the folder.
for package in build/python3-lnorm_*.deb build/liblnorm0_*.deb; do dpkg -x "$package" "$folder"; done

installed=$folder/usr
[ "$("$installed/bin/lnorm" data/sample.json)" = "$(build/release/lnorm data/sample.json)" ] ||
  fail "the installed program gives another result"
"$installed/bin/lnorm" data/corpus/good/stored.npz:x >/dev/null
"$installed/bin/lnorm" --version
libraries=lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH)
LD_LIBRARY_PATH=$installed/$libraries PYTHONPATH=$installed/lib/python3/dist-packages /usr/bin/python3 -B tests/installed.py
tests/consumer/pkg_config.sh "${CXX:-g++}" "$installed" "$folder/consumer"
tests/consumer/c_example.sh "${CC:-cc}" "$installed" "$folder/example"
mpirun=(env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun --oversubscribe)
"${mpirun[@]}" -n 2 "$installed/bin/lnorm-mpi" stats data/sample.npy | cmp - <("$installed/bin/lnorm" stats data/sample.npy) ||
  fail "lnorm-mpi gives another result"
for file in share/man/man1/lnorm.1.gz share/man/man1/lnorm-mpi.1.gz share/man/man1/lnorm-stats.1.gz \
  share/bash-completion/completions/lnorm share/zsh/vendor-completions/_lnorm \
  share/fish/vendor_completions.d/lnorm.fish "$libraries/cmake/lnorm/lnorm-config.cmake"; do
  [ -s "$installed/$file" ] || fail "there is no $file"
done
