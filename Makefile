# What people type. demo needs Go, make, curl and npm, which the JavaScript engine
# comes from (tools/fetch-engine.sh); what other targets need beside is installed by
# tools/setup.sh.

GO_TOOL := go tool -modfile=tools/go.mod
# lint has vetted them. A package may take as long as it does on a slow machine.
GO_TEST := go test -vet=off -timeout 60m

# Crates of Rust come from Debian's packages where they are installed, and each is
# compiled once for all examples and tests.
ifneq ($(wildcard /usr/share/cargo/registry/serde_json-*),)
export CARGO_NET_OFFLINE := true
endif
# One form of every package is compiled, by whatever target comes first.
export GOFLAGS += -trimpath
export CARGO_TARGET_DIR ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/runner-tests/cargo

.PHONY: demo build examples test lint unit blackbox soak bench generate clean

demo: build ## serve the example app and print what to try
	bin/runner build plugins/examples/orders
	@tools/demo.sh

build: bin/runner ## build the runner

bin/runner: FORCE
	@mkdir -p bin
	@tools/fetch-engine.sh || echo "make: this runner will build no TypeScript"
	go build -trimpath -o bin/runner ./cmd/runner
FORCE:

examples: build ## build the handlers of every example, in every language
	@for app in plugins/examples/*/; do \
	  bin/runner build $$app || { echo "make: $$app is not built: tools/setup.sh installs what compilers it needs" >&2; exit 1; }; \
	done

test: setup lint unit blackbox ## all checks in their short form

.PHONY: setup
setup:
	@tools/setup.sh
	@tools/fetch-engine.sh
	@tools/fetch-typescript.sh >/dev/null
	@tools/fetch-openapi-validator.sh >/dev/null
	@tools/fetch-oidc-provider.sh >/dev/null
	@tools/fetch-modules.sh >/dev/null

lint:
	@unformatted=$$(gofmt -l $$(git ls-files -co --exclude-standard '*.go')); \
	  test -z "$$unformatted" || { echo "not formatted (run gofmt -w):"; echo "$$unformatted"; exit 1; }
	go vet ./...
	$(GO_TOOL) staticcheck ./...
	cd sdk/go && go vet ./... && GOOS=wasip1 GOARCH=wasm go vet -unsafeptr=false ./...

unit:
	$(GO_TEST) $$(go list ./... | grep -v /tests/)
	$(GO_TEST) -race -short ./store/... ./entity/... ./keystore/... ./runtime/... ./hostabi/... ./internal/outbound
	cd sdk/go && go test ./...
	for mod in plugins/examples/*/handlers/*/go.mod; do (cd $$(dirname $$mod) && go vet ./... && go test ./...) || exit 1; done

blackbox: examples
	for app in plugins/examples/*/; do bin/runner fmt --check $$app && bin/runner check --modules $$app || exit 1; done
	$(GO_TEST) $$(go list ./tests/... | grep -v /tests/sandbox)
	$(GO_TEST) ./tests/sandbox # alone: it compares times

soak: setup examples ## the long form of the tests; writes .bench/soak.md
	tools/soak.sh

bench: build ## req/s, CPU and memory against bare fasthttp and per language; writes docs/performance.md
	tools/bench.sh

generate: ## the ABI's tables and the SDKs' constants from hostabi/abi; the notices of licences
	go generate ./hostabi/abi ./cmd/runner

clean:
	rm -rf bin demo plugins/examples/*/build
