# Functions for scripts that fetch files from a network, which may fail once, while other
# processes fetch the same. The scripts source it.

say() { echo "tools/${0##*/}: $*" >&2; }

# retry runs a command until it succeeds, four times at most.
retry() {
  local pause
  for pause in 2 10 30; do
    "$@" && return
    say "failed, trying again in $pause s: $*"
    sleep "$pause"
  done
  "$@" && return
  say "failed four times: $*"
  return 1
}

# as_root runs a command as root.
as_root() {
  if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo "$@"; fi
}

# need_npm ends the script if npm is missing.
need_npm() {
  command -v npm >/dev/null || { say "npm is missing, and needed for $*: install Node.js"; exit 1; }
}

# npm_folder creates a directory with npm packages, unless it exists. It appears complete or
# not at all, even when several processes create it.
npm_folder() { # directory, packages…
  local dir=$1
  shift
  [ -d "$dir" ] && return
  need_npm "$@"
  mkdir -p "${dir%/*}"
  getting=$(mktemp -d "$dir.XXXXXX")
  trap 'rm -rf "$getting"' EXIT
  echo '{"private": true}' > "$getting/package.json"
  retry npm install --prefix "$getting" --loglevel=error --no-audit --no-fund --no-package-lock --ignore-scripts --save-exact "$@" >&2 ||
    { say "npm could not install $*: check the network"; exit 1; }
  mv -T "$getting" "$dir" 2>/dev/null || [ -d "$dir" ] || # or another process was faster
    { say "cannot create $dir: check the free space and the owner of the directory"; exit 1; }
}

# npm_locked creates a directory with the npm packages that a package-lock.json names, as npm_folder does.
npm_locked() { # directory, directory with package.json and package-lock.json
  local dir=$1
  [ -d "$dir" ] && return
  need_npm "$2"
  mkdir -p "${dir%/*}"
  getting=$(mktemp -d "$dir.XXXXXX")
  trap 'rm -rf "$getting"' EXIT
  cp "$2/package.json" "$2/package-lock.json" "$getting"
  retry npm ci --prefix "$getting" --loglevel=error --no-audit --no-fund --ignore-scripts >&2 ||
    { say "npm could not install the packages of $2: check the network"; exit 1; }
  mv -T "$getting" "$dir" 2>/dev/null || [ -d "$dir" ] || # or another process was faster
    { say "cannot create $dir: check the free space and the owner of the directory"; exit 1; }
}

# npm_command prints the path of a command of an npm package, which is fetched once, into the user's cache.
npm_command() { # package, version, command
  local dir=${XDG_CACHE_HOME:-$HOME/.cache}/runner-tests/$1-$2
  npm_folder "$dir" "$1@$2"
  local command=$dir/node_modules/.bin/$3
  [ -x "$command" ] || { say "$command is missing: remove $dir and try again"; exit 1; }
  echo "$command"
}

# deb_folder creates a directory with the files of Debian packages, which are not installed,
# unless it exists. It appears complete or not at all, as that of npm_folder.
deb_folder() { # directory, suites or "" for the machine's own, packages, as name or name/suite
  local dir=$1 suites=$2 package apt_options=(-qq -o APT::Sandbox::User=root)
  shift 2
  [ -d "$dir" ] && return
  command -v apt-get >/dev/null || { say "apt-get is missing, and needed for $*"; exit 1; }
  mkdir -p "${dir%/*}"
  getting=$(mktemp -d "$dir.XXXXXX")
  trap 'rm -rf "$getting"' EXIT
  mkdir "$getting/packages" "$getting/root"
  if [ -n "$suites" ]; then
    debian_suites "$getting/apt" "$suites" deb
  else
    retry as_root apt-get update -qq >&2 || say "could not update the package lists; using the present ones"
  fi
  (cd "$getting/packages" && retry apt-get "${apt_options[@]}" download "$@" >&2) ||
    { say "apt-get could not download $*: check the network"; exit 1; }
  for package in "$getting"/packages/*.deb; do
    dpkg-deb -x "$package" "$getting/root"
  done
  chmod 755 "$getting/root"
  mv -T "$getting/root" "$dir" 2>/dev/null || [ -d "$dir" ] || # or another process was faster
    { say "cannot create $dir: check the free space and the owner of the directory"; exit 1; }
}

# debian_suites prepares a directory for apt-get with other suites of Debian, from the mirror that the machine has, and
# sets apt_options. The machine's own lists are not changed.
debian_suites() { # directory, suites, deb or deb-src
  local mirror one
  mirror=$(sed -nE 's/^URIs: *([^ ]+).*/\1/p; s/^deb +(\[[^]]*\] +)?([^ ]+) .*/\2/p' \
    /etc/apt/sources.list /etc/apt/sources.list.d/debian.* 2>/dev/null | head -n 1 || true)
  [ -n "$mirror" ] || { say "/etc/apt/sources.list and /etc/apt/sources.list.d/debian.* name no mirror of Debian: add one"; exit 1; }
  mkdir -p "$1/lists/partial" "$1/cache/archives/partial"
  for one in $2; do echo "$3 [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $one main"; done > "$1/sources.list"
  apt_options=(-qq -o "Dir::Etc::sourcelist=$1/sources.list" -o Dir::Etc::sourceparts=/dev/null
    -o "Dir::State::lists=$1/lists" -o "Dir::Cache=$1/cache" -o APT::Sandbox::User=root)
  retry as_root apt-get "${apt_options[@]}" update >&2 || { say "apt-get could not fetch the lists of $2: check the network"; exit 1; }
}
