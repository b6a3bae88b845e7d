#!/usr/bin/env bash
# Prints the directory of the generators of clients that the tests run on OpenAPI documents:
# orval, and oapi-codegen with a Go module that its clients compile in. They are fetched once,
# into the user's cache.
set -euo pipefail
. "$(dirname "$0")/get.sh"

orval=7.13.0 oapi_codegen=v2.8.2 runtime=v1.8.0
dir=${XDG_CACHE_HOME:-$HOME/.cache}/runner-tests/openapi-generators-$orval-$oapi_codegen
npm_folder "$dir" "orval@$orval"
if [ ! -d "$dir/go" ]; then
  module=$(mktemp -d "$dir/go.XXXXXX")
  trap 'rm -rf "$module"' EXIT
  cd "$module"
  mkdir api
  export GOFLAGS=-mod=mod GOWORK=off
  go mod init client.example >&2
  GOBIN=$module retry go install "github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@$oapi_codegen" >&2
  printf 'package api\n\nimport (\n\t_ "github.com/oapi-codegen/runtime"\n\t_ "github.com/oapi-codegen/runtime/types"\n)\n' > api/api.go
  go mod edit -require "github.com/oapi-codegen/runtime@$runtime"
  retry go mod tidy >&2
  mv -T "$module" "$dir/go" 2>/dev/null || [ -d "$dir/go" ] # or another process was faster
fi
echo "$dir"
