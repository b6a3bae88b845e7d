#!/usr/bin/env bash
# Writes the VS Code extension to an archive that VS Code installs, with the client of the language server in its one file:
#
#   tools/vsix.sh <archive.vsix>
#
# The same commit gives the same bytes. The format is simple, and vsce, the tool for it, would bring 200 packages.
set -euo pipefail
archive=$(realpath "$1")
cd "$(dirname "$0")/.."
. tools/get.sh

packages=$(tools/fetch-vscode-packages.sh)
time=$(git log -1 --format=%ct)
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
out=$made/extension
mkdir "$out"
cp -r LICENSE editors/vscode/{README.md,package.json,language-configuration.json,snippets,syntaxes} "$out"

NODE_PATH=$packages/node_modules tools/go.sh run github.com/evanw/esbuild/cmd/esbuild editors/vscode/extension.js \
  --bundle --platform=node --target=node20 --external:vscode --minify --log-level=error --outfile="$out/extension.js"
(cd "$packages" && npm ls --omit=dev --all --parseable | tail -n +2) | while read -r package; do
  printf '%s\n\n' "$(basename "$package")"
  cat "$package"/[Ll][Ii][Cc][Ee][Nn]*
  printf '\n\n'
done > "$out/NOTICES"

version=$(sed -n 's/^  "version": "\(.*\)",$/\1/p' editors/vscode/package.json)
engine=$(sed -n 's/^  "engines": { "vscode": "\(.*\)" },$/\1/p' editors/vscode/package.json)
sed "s/@VERSION@/$version/; s/@ENGINE@/$engine/" editors/vscode/extension.vsixmanifest > "$made/extension.vsixmanifest"
cat > "$made/[Content_Types].xml" << 'END'
<?xml version="1.0" encoding="utf-8"?>
<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">
  <Default Extension="json" ContentType="application/json"/>
  <Default Extension="js" ContentType="application/javascript"/>
  <Default Extension="md" ContentType="text/markdown"/>
  <Default Extension="vsixmanifest" ContentType="text/xml"/>
  <Override PartName="/extension/LICENSE" ContentType="text/plain"/>
  <Override PartName="/extension/NOTICES" ContentType="text/plain"/>
</Types>
END
(cd tools && go run ./zip "$archive" "$made/." "$time")
