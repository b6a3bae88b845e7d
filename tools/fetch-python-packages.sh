#!/usr/bin/env bash
# Prints the directory with packages in Python, which the tests use: those of Debian 12, unpacked once in the user's cache.
set -euo pipefail
. "$(dirname "$0")/get.sh"

packages=(
  asgiref attr bottle bs4 cachetools certifi chardet click colorama dateutil django flask html5lib idna itsdangerous jinja2
  jsonschema jwt mako markdown markupsafe marshmallow packaging pygments pyparsing pyrsistent requests simplejson six sniffio
  soupsieve sqlparse starlette anyio tabulate toml typing-extensions tz urllib3 webencodings werkzeug wtforms yaml
)
packages=("${packages[@]/#/python3-}")
dir=${XDG_CACHE_HOME:-$HOME/.cache}/runner-tests/python-$(printf '%s\n' "${packages[@]}" | sha256sum | cut -c1-12)
deb_folder "$dir" "${packages[@]}"
echo "$dir/usr/lib/python3/dist-packages"
