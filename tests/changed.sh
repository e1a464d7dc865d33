#!/bin/sh
# The files that the last change touched, the last first: what was committed in the six hours up to the last commit.
#   changed.sh [PATH...]
since=$(($(git log -1 --format=%ct) - 6 * 3600))
git log --since="@$since" --format= --name-only --no-renames -- "$@" | awk '!seen[$0]++'
