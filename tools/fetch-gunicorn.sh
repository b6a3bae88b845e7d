#!/usr/bin/env bash
# Prints the directory with gunicorn, a server of Python, which `bin/bench -python` compares with: Debian 12's, unpacked
# once in the user's cache. It runs with Debian's python3.
set -euo pipefail
. "$(dirname "$0")/get.sh"

packages=(python3-gunicorn python3-pkg-resources)
[ -x /usr/bin/python3 ] || { say "/usr/bin/python3 is missing: install python3"; exit 1; }
dir=${XDG_CACHE_HOME:-$HOME/.cache}/runner-tests/gunicorn-$(printf '%s\n' "${packages[@]}" | sha256sum | cut -c1-12)
deb_folder "$dir" "" "${packages[@]}"
echo "$dir/usr/lib/python3/dist-packages"
