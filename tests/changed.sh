#!/bin/sh
# Prints the files that the last change touched, the newest first. The last change is what was committed in the six hours
# before the last commit.
#   changed.sh [PATH...]
since=$(($(git log -1 --format=%ct) - 6 * 3600))
git log --since="@$since" --format= --name-only --no-renames -- "$@" | awk '!seen[$0]++'
