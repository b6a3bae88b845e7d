#!/usr/bin/env bash
# Runs a program for Windows: tools/wine.sh program.exe arguments…
#
# It uses wine of Debian 13 in a directory of its own (chroot), since that of Debian 12 lacks calls that Go's
# programs make. The directory is made when it is missing, in about two minutes: about 1.5 GB in the user's cache. The
# program sees /tmp and this repository under their paths, on drive Z:. It needs root.
set -euo pipefail
repo=$(cd "$(dirname "$0")/.." && pwd)
. "$repo/tools/get.sh"
self=$repo/tools/wine.sh

if [ "${1:-}" = in ]; then # within the mounts of its own
  root=$2 dir=$3
  shift 3
  mount --rbind /proc "$root/proc"
  mount --rbind /dev "$root/dev"
  mount --bind /tmp "$root/tmp"
  mkdir -p "$root$repo"
  mount --bind "$repo" "$root$repo"
  # A wineserver opens the files of all programs of a WINEPREFIX, and has the mounts of the first of them. So each
  # repository has a WINEPREFIX of its own.
  prefix=$root/root/wine
  [ ! -e "$root/ready" ] || prefix=$prefix-$(printf %s "$repo" | cksum | cut -d " " -f 1)
  if [ ! -e "$prefix" ]; then
    copy=$(mktemp -d "$prefix.XXXX")
    cp -al "$root/root/wine/." "$copy"
    chmod -R go= "$copy/drive_c/users" # as on Windows: the runner trusts no cache that others can write to
    mv -T "$copy" "$prefix" 2> /dev/null || rm -rf "$copy" # another process was faster
  fi
  export WINEPREFIX=${prefix#"$root"} WINEDEBUG=-all HOME=/root XDG_RUNTIME_DIR=/root
  unset XDG_CACHE_HOME XDG_CONFIG_HOME TMPDIR
  umask 077 # the profile of a user on Windows is private, too
  # Without a server that stays for a while, each program starts the services of Windows anew: a second of CPU time. They
  # are started here, since they keep the standard output of the program that starts them.
  (
    flock 9
    if chroot "$root" /usr/lib/wine/wineserver64 -p30 9>&-; then # exit status 2: one runs
      chroot "$root" /usr/lib/wine/wine64 cmd /c exit 9>&-
    fi
  ) < /dev/null > /dev/null 2>&1 9> "$prefix/lock" || true
  exec chroot "$root" /bin/sh -c 'PATH=/usr/bin:/bin:/usr/lib/wine; cd "$0" && exec wine64 "$@"' "$dir" "$@"
fi

root=${XDG_CACHE_HOME:-$HOME/.cache}/runner-tests/wine-13
if [ ! -e "$root/ready" ]; then
  [ "$(id -u)" -eq 0 ] || { say "only root can make and use the directory of wine"; exit 1; }
  mkdir -p "${root%/*}"
  exec 9> "$root.lock"
  flock 9
fi
if [ ! -e "$root/ready" ]; then
  say "making a directory with wine of Debian 13: about two minutes"
  command -v debootstrap > /dev/null ||
    retry env DEBIAN_FRONTEND=noninteractive apt-get install -o DPkg::Lock::Timeout=600 -y -qq --no-install-recommends debootstrap > /dev/null
  mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Codename: bookworm' 2>/dev/null | head -1)
  rm -rf "$root"
  mkdir -p "$root"
  retry debootstrap --variant=minbase trixie "$root" ${mirror:+"$mirror"} > "$root.log" 2>&1 || { tail -5 "$root.log" >&2; exit 1; }
  chroot "$root" sh -c 'apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends wine64 && apt-get clean' >> "$root.log" 2>&1 ||
    { tail -5 "$root.log" >&2; exit 1; }
  mkdir -p "$root$repo" "$root/root/wine"
  unshare --mount "$self" in "$root" / wineboot -i > /dev/null 2>&1
  touch "$root/ready"
  exec 9>&-
fi
exec unshare --mount "$self" in "$root" "$PWD" "$@"
