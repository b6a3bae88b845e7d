#!/usr/bin/env bash
# Prints the directory with nginx, HAProxy and Caddy, which the tests use. They are packages
# of Debian 12, unpacked once in the user's cache. They are not installed, because then they
# would be started as services. tools/setup.sh installs their libraries.
set -euo pipefail
. "$(dirname "$0")/get.sh"

packages=(nginx haproxy caddy)
dir=${XDG_CACHE_HOME:-$HOME/.cache}/runner-tests/proxies
if ! [ -d "$dir" ]; then
  command -v apt-get >/dev/null || { say "apt-get is missing, and needed for ${packages[*]}"; exit 1; }
  mkdir -p "${dir%/*}"
  new=$(mktemp -d "$dir.XXXXXX")
  trap 'rm -rf "$new"' EXIT
  mkdir "$new/packages" "$new/root"
  retry as_root apt-get update -qq >&2 || say "could not update the package lists; using the present ones"
  (cd "$new/packages" && retry apt-get download -qq -o APT::Sandbox::User=root "${packages[@]}" >&2) ||
    { say "apt-get could not download ${packages[*]}: check the network"; exit 1; }
  for package in "$new"/packages/*.deb; do
    dpkg-deb -x "$package" "$new/root"
  done
  chmod 755 "$new/root"
  mv -T "$new/root" "$dir" 2>/dev/null || [ -d "$dir" ] || # or another process was faster
    { say "cannot create $dir: check the free space and the owner of the directory"; exit 1; }
fi
echo "$dir"
