#!/usr/bin/env bash
# Prints the directory with nginx, HAProxy and Caddy, which the tests use. They are packages
# of Debian 12, unpacked once in the user's cache. They are not installed, because then they
# would be started as services. tools/setup.sh installs their libraries.
set -euo pipefail
. "$(dirname "$0")/get.sh"

dir=${XDG_CACHE_HOME:-$HOME/.cache}/runner-tests/proxies
deb_folder "$dir" "" nginx haproxy caddy
echo "$dir"
