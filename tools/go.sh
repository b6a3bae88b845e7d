#!/usr/bin/env bash
# Runs a go command of the root module with the patches of third_party:
#
#   tools/go.sh test ./runtime/sandbox
#
# The patched modules are in bin/modules, and made again after a change. PATCHES at the end of a
# string in them is replaced by a digest of the patches. Without git or the network the command runs
# without the patches.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/get.sh

modules=bin/modules

# make_modules copies each module that has patches, applies them, and writes the go.mod that
# names the copies.
make_modules() { # directory
  local series folder module version dir patch
  command -v git >/dev/null || { say "git is missing"; return 1; }
  cp go.mod go.sum "$1/" || return 1
  for series in third_party/*/series; do
    folder=$(basename "$(dirname "$series")")
    read -r _ module version < "$series"
    [ "$(go list -m -f '{{.Version}}' "$module")" = "$version" ] || { say "$series is for $module $version, and go.mod has another version"; exit 1; }
    dir=$(go mod download -json "$module@$version" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')
    [ -d "$dir" ] || { say "cannot download $module $version: check the network"; return 1; }
    cp -r "$dir" "$1/$folder" && chmod -R u+w "$1/$folder" || return 1
    for patch in $(grep -v '^#' "$series"); do
      # outside of any repository, so that git takes paths as they are
      (cd "$1/$folder" && GIT_DIR=/dev/null git apply --whitespace=nowarn "$OLDPWD/third_party/$folder/$patch") ||
        { say "cannot apply third_party/$folder/$patch to $module $version"; exit 1; }
    done
    grep -rl --include='*.go' 'PATCHES"' "$1/$folder" | xargs -r sed -i "s/PATCHES\"/${sum:0:8}\"/"
    go mod edit -replace="$module=./$modules/$folder" "$1/go.mod" || return 1
  done
}

sum=$(cat go.mod go.sum tools/go.sh third_party/*/series third_party/*/*.patch | sha256sum)
if [ "$(cat $modules/sum 2>/dev/null)" != "$sum" ]; then
  mkdir -p bin
  new=$(mktemp -d bin/modules.XXXXXX)
  trap 'rm -rf "$new"' EXIT
  if make_modules "$new"; then
    echo "$sum" > "$new/sum"
    rm -rf "$modules"
    mv -T "$new" "$modules" || [ "$(cat $modules/sum)" = "$sum" ] # another process may have made them
  else
    rm -rf "$new"
    say "building without the patches of third_party: handlers compute more slowly"
    exec go "$@"
  fi
fi
command=$1
shift
exec go "$command" -modfile=$modules/go.mod -tags=patched "$@"
