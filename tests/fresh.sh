#!/usr/bin/env bash
# Commands of bootstrap.sh on a bare system of Debian:
#   tests/fresh.sh bookworm|trixie demo|test|"test system"|bytes|python-test|wheel|wheel-here|static...
# debootstrap installs it into a temporary folder, and what is committed here is cloned into it. What wheel and static make
# runs in systems that have none of our libraries. bytes compares the output of the program that was built there with the
# output of this system's build/release/lnorm.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$(mktemp -d "${TMPDIR:-/var/tmp}/lnorm-$1.XXXXXX")
export suite=$1 systems=$folder log=$folder/log
child=
take_away() {
  if [ -n "$child" ]; then
    kill -KILL "$child" 2>/dev/null || true
    wait "$child" 2>/dev/null || true
  fi
  rm -rf --one-file-system "$folder"
}
trap take_away EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# Runs in namespaces of its own: its mounts and processes end with it, however it ends.
inside() {
  set -euo pipefail
  local times=""
  timed() {  # name, command
    local start=$SECONDS
    "${@:2}"
    times+="${times:+, }$1 $((SECONDS - start)) s"
  }
  within() {  # system, command
    env -i HOME=/root PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin chroot "$systems/$1" "${@:2}"
  }
  install_system() {  # name, suite
    local root=$systems/$1
    debootstrap --variant=minbase "$2" "$root" >"$log" 2>&1 || {
      tail "$log" >&2
      exit 1
    }
    cp /etc/hosts /etc/resolv.conf "$root/etc/"
    echo force-unsafe-io >"$root/etc/dpkg/dpkg.cfg.d/unsafe-io"  # a system that is thrown away needs no fsync
    mount -t proc proc "$root/proc"
    mount --rbind /dev "$root/dev"
    git clone --quiet . "$root/lnorm"
    mkdir "$root/lnorm/build"
  }
  add_packages() {  # system, packages
    within "$1" apt-get update -qq
    within "$1" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${@:2}" >"$log" 2>&1
  }
  bootstrap() {
    local words
    read -ra words <<<"$1"
    within here /lnorm/bootstrap.sh "${words[@]}"
  }
  compare_bytes() {
    local root=$systems/here libraries
    libraries=$root/lib/$(uname -m)-linux-gnu
    tests/cross/same_bytes.py build/release/lnorm "$libraries"/ld-linux-*.so.* --library-path "$libraries" \
      "$root/lnorm/build/release/lnorm"
  }

  # The wheel of this system, with Python and NumPy of that one.
  try_wheel_of_host() {
    add_packages here python3-numpy python3-pytest python3-venv
    cp build/lnorm-*"_$(uname -m).whl" "$systems/here/lnorm/build/"
    within here sh -c 'cd /lnorm && python3 -m venv --system-site-packages /venv && /venv/bin/pip install -q --no-index build/*.whl &&
      LNORM_PROGRAM=/venv/bin/lnorm /venv/bin/python -m pytest -q -p no:cacheprovider python/tests/test_norms.py python/tests/test_tensors.py'
  }

  # What follows a command.
  try_wheel() {
    install_system there "$suite"
    add_packages there python3-numpy python3-venv
    cp "$systems"/here/lnorm/build/*.whl "$systems/there/lnorm/build/"
    within there sh -c '/lnorm/tests/pip.sh /lnorm/build/*.whl'
  }
  try_pip() {  # where Debian has scikit-build-core
    within here apt-cache show python3-scikit-build-core >/dev/null 2>&1 || return 0
    add_packages here python3-scikit-build-core
    within here /lnorm/tests/pip.sh --no-build-isolation .
  }
  try_archive() {
    local other
    for other in bookworm trixie bullseye; do
      install_system "$other" "$other"
      tar -xf "$systems"/here/lnorm/build/*.tar.xz -C "$systems/$other/usr/local" --strip-components=1
      echo "$other: $(within "$other" ldd --version | head -n 1)"
      within "$other" /lnorm/tests/installed.sh || [ "$other" = bullseye ]
    done
  }

  timed system install_system here "$suite"
  local command
  for command in "$@"; do
    case $command in
      bytes) timed bytes compare_bytes ;;
      wheel-here) timed "wheel here" try_wheel_of_host ;;
      *) timed "$command" bootstrap "$command" ;;
    esac
    case $command in
      wheel)
        timed "wheel elsewhere" try_wheel
        timed "pip install" try_pip
        ;;
      static) timed "archive elsewhere" try_archive ;;
    esac
  done
  echo "fresh $suite: $times"
}
export -f inside
unshare --mount --pid --fork --kill-child bash -c 'inside "$@"' inside "${@:2}" &
child=$!
wait "$child"
