# How the scripts beside it get what they need from a network, which may be slow or
# fail once, while others get the same. It is sourced.

say() { echo "tools/${0##*/}: $*" >&2; }

# retry runs a command until it succeeds, four times at most.
retry() {
  local pause
  for pause in 2 10 30; do
    "$@" && return
    say "this failed, and is tried again in $pause s: $*"
    sleep "$pause"
  done
  "$@" && return
  say "this failed four times: $*"
  return 1
}

# need_npm ends the script where there is no npm for what is named.
need_npm() {
  command -v npm >/dev/null || { say "npm is not installed, and $* comes from it: install Node.js"; exit 1; }
}

# npm_folder makes a folder with packages of npm, unless it is there: whole, or not
# at all, whoever else makes it meanwhile.
npm_folder() { # folder, packages…
  local dir=$1
  shift
  [ -d "$dir" ] && return
  need_npm "$@"
  mkdir -p "${dir%/*}"
  getting=$(mktemp -d "$dir.XXXXXX")
  trap 'rm -rf "$getting"' EXIT
  echo '{"private": true}' > "$getting/package.json"
  retry npm install --prefix "$getting" --loglevel=error --no-audit --no-fund --no-package-lock --ignore-scripts --save-exact "$@" >&2 ||
    { say "npm could not install $*: is the network there?"; exit 1; }
  mv -T "$getting" "$dir" 2>/dev/null || [ -d "$dir" ] || # or somebody else was faster
    { say "$dir cannot be made: is the disk full, or the folder of another user?"; exit 1; }
}
