#!/usr/bin/env bash
# Builds packaging/Containerfile, and runs the container's program. As root, with buildah and debootstrap; the
# image that it begins with is made by debootstrap, so that no registry is needed.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$(mktemp -d "${TMPDIR:-/var/tmp}/lnorm-container.XXXXXX")
trap 'rm -rf --one-file-system "$folder"' EXIT
export STORAGE_DRIVER=vfs BUILDAH_ISOLATION=chroot
buildah() { command buildah --root "$folder/store" --runroot "$folder/run" "$@"; }

suite=$(sed -n 's/^FROM debian:\(.*\)-slim$/\1/p' packaging/Containerfile)
debootstrap --variant=minbase "$suite" "$folder/system" >/dev/null
base=$(buildah from scratch)
buildah add --quiet "$base" "$folder/system" / >/dev/null
buildah commit --quiet "$base" "docker.io/library/debian:$suite-slim" >/dev/null
git clone --quiet . "$folder/lnorm"
buildah build --pull-never --quiet --tag lnorm --file packaging/Containerfile "$folder/lnorm" >/dev/null
container=$(buildah from --pull-never lnorm)
[ "$(buildah inspect --format '{{.OCIv1.Config.Entrypoint}}' lnorm)" = '[lnorm]' ]
buildah run "$container" lnorm --from json --to text <data/sample.json
