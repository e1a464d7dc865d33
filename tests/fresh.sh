#!/usr/bin/env bash
# README's two commands on a bare system of Debian:  tests/fresh.sh bookworm|trixie
# debootstrap installs it into a temporary folder, and what is committed here is cloned into it.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$(mktemp -d "${TMPDIR:-/var/tmp}/lnorm-$1.XXXXXX")
export suite=$1 root=$folder/system log=$folder/log
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
  in_system() { env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin chroot "$root" "$@"; }
  install_system() {
    debootstrap --variant=minbase "$suite" "$root" >"$log" 2>&1 || {
      tail "$log" >&2
      exit 1
    }
  }

  timed system install_system
  cp /etc/hosts /etc/resolv.conf "$root/etc/"
  mount -t proc proc "$root/proc"
  mount --rbind /dev "$root/dev"
  git clone --quiet . "$root/lnorm"
  timed demo in_system /lnorm/bootstrap.sh demo
  timed test in_system /lnorm/bootstrap.sh test
  echo "fresh $suite: $times"
}
export -f inside
unshare --mount --pid --fork --kill-child bash -c inside &
child=$!
wait "$child"
