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
deb_folder() { # directory, packages…
  local dir=$1 package
  shift
  [ -d "$dir" ] && return
  command -v apt-get >/dev/null || { say "apt-get is missing, and needed for $*"; exit 1; }
  mkdir -p "${dir%/*}"
  getting=$(mktemp -d "$dir.XXXXXX")
  trap 'rm -rf "$getting"' EXIT
  mkdir "$getting/packages" "$getting/root"
  retry as_root apt-get update -qq >&2 || say "could not update the package lists; using the present ones"
  (cd "$getting/packages" && retry apt-get download -qq -o APT::Sandbox::User=root "$@" >&2) ||
    { say "apt-get could not download $*: check the network"; exit 1; }
  for package in "$getting"/packages/*.deb; do
    dpkg-deb -x "$package" "$getting/root"
  done
  chmod 755 "$getting/root"
  mv -T "$getting/root" "$dir" 2>/dev/null || [ -d "$dir" ] || # or another process was faster
    { say "cannot create $dir: check the free space and the owner of the directory"; exit 1; }
}
