#!/usr/bin/env bash
# Prints the directory with packages in Python, which the tests use, unpacked once in the user's cache: those of Debian 12,
# and of Debian 13 where these import modules that Python 3.13 does not have.
set -euo pipefail
. "$(dirname "$0")/get.sh"

packages=(
  attr bs4 cachetools certifi chardet click colorama dateutil flask html5lib idna itsdangerous jinja2
  jsonschema jwt mako markdown markupsafe marshmallow packaging pygments pyparsing pyrsistent requests simplejson six sniffio
  soupsieve starlette anyio tabulate toml typing-extensions tz urllib3 webencodings werkzeug wtforms yaml
)
newer=(asgiref bottle django sqlparse)
packages=("${packages[@]/%//bookworm}" "${newer[@]/%//trixie}")
packages=("${packages[@]/#/python3-}")
dir=${XDG_CACHE_HOME:-$HOME/.cache}/runner-tests/python-$(printf '%s\n' "${packages[@]}" | sha256sum | cut -c1-12)
deb_folder "$dir" "bookworm trixie" "${packages[@]}"
echo "$dir/usr/lib/python3/dist-packages"
