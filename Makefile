# What people type. Everything that a target needs beyond Go, make and curl is
# installed by tools/setup.sh, from Debian's packages.

GO_TOOL := go tool -modfile=tools/go.mod

.PHONY: demo build examples test lint unit blackbox soak bench generate clean

demo: build examples ## serve the example app and print what to try
	@tools/demo.sh

build: bin/runner ## build the runner

bin/runner: FORCE
	@mkdir -p bin
	go build -trimpath -o bin/runner ./cmd/runner
FORCE:

examples: ## compile the handlers of the examples
	@for dir in plugins/examples/*/handlers/*/; do \
	  name=$$(basename $$dir); app=$$(dirname $$(dirname $$dir)); mkdir -p $$app/build; \
	  echo "go build $$dir"; \
	  (cd $$dir && GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -trimpath -ldflags='-s -w' -o ../../build/$$name.wasm .) || exit 1; \
	done

test: setup lint unit blackbox ## all checks in their short form

.PHONY: setup
setup:
	@tools/setup.sh

lint:
	@unformatted=$$(gofmt -l $$(git ls-files -co --exclude-standard '*.go')); \
	  test -z "$$unformatted" || { echo "not formatted (run gofmt -w):"; echo "$$unformatted"; exit 1; }
	go vet ./...
	$(GO_TOOL) staticcheck ./...
	cd sdk/go && go vet ./... && GOOS=wasip1 GOARCH=wasm go vet -unsafeptr=false ./...

unit:
	go test $$(go list ./... | grep -v /tests)
	go test -race -short ./store/... ./entity/... ./keystore/... ./runtime/... ./hostabi/...
	cd sdk/go && go test ./...
	for dir in plugins/examples/*/handlers/*/; do (cd $$dir && go vet ./... && go test ./...) || exit 1; done

blackbox: build examples
	for app in plugins/examples/*/; do bin/runner fmt --check $$app && bin/runner check --modules $$app || exit 1; done
	go test ./tests/...

soak: setup examples ## the long form of the tests; writes docs/soak.md
	tools/soak.sh

bench: build examples ## req/s and CPU per request against bare fasthttp; writes docs/performance.md
	tools/bench.sh

generate: ## the ABI's tables and the SDKs' constants from hostabi/abi
	go generate ./hostabi/abi

clean:
	rm -rf bin demo plugins/examples/*/build
