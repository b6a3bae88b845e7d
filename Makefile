# demo and check need Go, make, curl and npm; tools/fetch-engine.sh fetches the JavaScript engine
# from npm. tools/setup.sh installs what the other targets need.

# lint runs vet. The timeout is for slow machines.
GO_TEST := tools/go.sh test -vet=off -timeout 60m
# Two packages more than there are processors: many tests wait.
MANY := -p $(shell expr $$(nproc) + 2)

# Rust crates come from Debian's packages where they are installed. Each is compiled once
# for all examples and tests.
ifneq ($(wildcard /usr/share/cargo/registry/serde_json-*),)
export CARGO_NET_OFFLINE := true
endif
# All targets use the same flags, so that each package is compiled once.
export GOFLAGS += -trimpath
export CARGO_TARGET_DIR ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/runner-tests/cargo

.PHONY: demo build examples check test test-arm64 test-windows lint cross unit short blackbox fuzz soak bench dist generate clean

demo: build ## serve the example app and print what to try
	bin/runner build plugins/examples/orders
	@tools/demo.sh

build: bin/runner ## build bin/runner

bin/runner: FORCE
	@mkdir -p bin
	@tools/fetch-engine.sh || echo "make: this runner cannot build TypeScript: the engine is missing"
	tools/go.sh build -trimpath -o bin/runner ./cmd/runner
FORCE:

examples: build ## build the handlers of every example, in every language
	@for app in plugins/examples/*/; do \
	  bin/runner build $$app || { echo "make: cannot build $$app: tools/setup.sh installs the compilers" >&2; exit 1; }; \
	done

check: build lint cross short ## build, lint and the unit tests that need no compilers; two minutes, the first time more

test: ## everything in its short form
	@tools/fetch-engine.sh
	@$(MAKE) --no-print-directory -j2 setup lint cross # one waits for the network, the others compute
	@$(MAKE) --no-print-directory unit blackbox
	@tools/test-windows.sh short
	@tools/skipped.sh

test-arm64: ## tests of the runner for arm64, under qemu: about five minutes
	@tools/test-arm64.sh

test-windows: ## tests of the runner for Windows, under wine: about eight minutes; the first time it fetches wine
	@tools/test-windows.sh

.PHONY: setup
setup:
	@tools/setup.sh
	@tools/fetch-engine.sh
	@tools/fetch-typescript.sh >/dev/null
	@tools/fetch-pyright.sh >/dev/null
	@tools/fetch-textmate.sh >/dev/null
	@tools/fetch-vscode-packages.sh >/dev/null
	@tools/fetch-hono.sh >/dev/null
	@tools/fetch-axe.sh >/dev/null
	@tools/fetch-jco.sh >/dev/null
	@tools/fetch-packages.sh >/dev/null
	@tools/fetch-interpreters.sh >/dev/null
	@tools/fetch-python-packages.sh >/dev/null
	@tools/fetch-urltests.sh >/dev/null
	@tools/fetch-jsontests.sh >/dev/null
	@tools/fetch-openapi-validator.sh >/dev/null
	@tools/fetch-openapi-generators.sh >/dev/null
	@tools/fetch-oidc-provider.sh >/dev/null
	@tools/fetch-modules.sh >/dev/null
	@tools/fetch-proxies.sh >/dev/null
	@tools/fetch-promtool.sh >/dev/null

lint:
	@unformatted=$$(gofmt -l $$(git ls-files -co --exclude-standard '*.go')); \
	  test -z "$$unformatted" || { echo "not formatted (run gofmt -w):"; echo "$$unformatted"; exit 1; }
	cd tools && go build -o ../bin/lint ./lint
	bin/lint ./...
	cd sdk/go && go vet ./... && GOOS=wasip1 GOARCH=wasm go vet -unsafeptr=false ./...

# The types of all packages and all tests fit on the systems of authors.
cross:
	@tools/go.sh list -m >/dev/null # makes the go.mod with the patched modules
	@cd tools && go build -o ../bin/cross ./cross
	@bin/cross -modfile=bin/modules/go.mod -tags=patched darwin/arm64 darwin/amd64 windows/amd64

# Packages that start goroutines, or whose tests do.
RACE := ./keystore $(addprefix ./keystore/,credtime tokenindex) ./state/entity \
  ./state/store $(addprefix ./state/store/,datadir files frame retry) \
  ./runtime $(addprefix ./runtime/,assets auth capture cpuqueue front guard limit live pages sandbox) \
  ./hostabi $(addprefix ./hostabi/,longwork outbound)

# The packages that take longest come first, so that no processor waits for them at the end.
unit:
	$(GO_TEST) $(MANY) ./develop/toolchain/... ./state/store/... ./node/cluster $$(go list ./... | grep -v /tests/)
	$(GO_TEST) $(MANY) -race -short $(RACE)
	RUNNER_TEST_MEMORY=portable $(GO_TEST) -count=1 -short -skip 'Compile|Cache' ./runtime/sandbox
	cd sdk/go && go test ./...
	for mod in plugins/examples/*/handlers/*/go.mod; do (cd $$(dirname $$mod) && go vet ./... && go test ./...) || exit 1; done

# -short leaves out tests that run compilers and tests that take seconds.
short:
	$(GO_TEST) -short $$(go list ./... | grep -v /tests/)

blackbox: examples
	for app in plugins/examples/*/; do bin/runner fmt --check $$app && bin/runner check --modules $$app || exit 1; done
	RUNNER_TEST_EXAMPLES=built $(GO_TEST) $(MANY) ./tests/operations ./tests/languages ./tests/docs $$(go list ./tests/... | grep -v /tests/sandbox)
	$(GO_TEST) ./tests/sandbox # alone: it compares times

fuzz: ## fuzz a target: make fuzz T=FuzzJSON TIME=60s; without T it lists all
	@tools/fuzz.sh "$(T)" "$(TIME)"

soak: setup examples ## the long form of the tests; writes docs/soak.md and .bench/soak.md
	tools/soak.sh

bench: build ## req/s, CPU and memory against bare fasthttp and per language; writes docs/performance.md
	tools/bench.sh

.PHONY: drill
drill: build ## the work of an operator on three nodes, as docs/operate.md has it
	$(GO_TEST) -count=1 -v ./tests/docs -run TestTheDrillOfTheOperatorsWorks

dist: ## static archives for each platform, the extension of VS Code, and their SHA-256 sums, in bin/dist
	tools/dist.sh

generate: ## write the ABI's tables and the SDKs' constants from hostabi/abi, and the licence notices
	go generate ./hostabi/abi ./cmd/runner

clean:
	rm -rf bin demo plugins/examples/*/build
