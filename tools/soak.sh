#!/usr/bin/env bash
# Runs the long form of the tests and writes a report to .bench/soak.md, which git
# ignores, and a table of its parts to docs/soak.md. With words it runs the parts whose titles
# contain one of them, and keeps the report's text about the others: tools/soak.sh isolation "rows:"
# Some parts compare times: the machine must be otherwise idle.
set -uo pipefail
cd "$(dirname "$0")/.."
export RUNNER_SOAK=1

report=.bench/soak.md
failed=0
mkdir -p .bench
if [ $# -eq 0 ] || [ ! -e "$report" ]; then
  {
    echo "# Soak"
    echo
    echo "Written by \`make soak\`, $(nproc) cores, $(go version | cut -d' ' -f3)."
  } > "$report"
fi
words=("$@")

wanted() { # title
  [ ${#words[@]} -eq 0 ] && return
  local word
  for word in "${words[@]}"; do
    [[ "$1" == *"$word"* ]] && return
  done
  return 1
}

remove_part() { # title
  awk -v title="## $1: " 'index($0, "## ") == 1 { skip = index($0, title) == 1 } !skip' "$report" | cat -s > "$report.new"
  mv "$report.new" "$report"
}

# counts says how many tests of a log passed, failed and were skipped, or what a fuzz target ran.
counts() { # log
  local runs
  runs=$(grep -aoE 'execs: [0-9]+' "$1" | tail -n 1 | cut -d' ' -f2)
  if [ -n "$runs" ]; then
    echo "$runs runs"
  elif grep -aqE '^--- ' "$1"; then
    echo "$(grep -acE '^--- PASS' "$1") passed, $(grep -acE '^--- FAIL' "$1") failed, $(grep -acE '^--- SKIP' "$1") skipped"
  else # a command that lists no tests
    echo "-"
  fi
}

# table writes the parts of the report that have run to docs/soak.md.
table() {
  echo "# The long form of the tests"
  echo
  echo "Written by \`make soak\` on a machine with $(nproc) cores ($(grep -m 1 'model name' /proc/cpuinfo | cut -d: -f2 | xargs)),"
  echo "$(go version | cut -d' ' -f3). A part that is not listed has not run yet. \`tools/soak.sh WORD\` runs the parts"
  echo "whose titles contain a word. Parts that compare times fail on a machine that does other work."
  echo
  echo "| part | outcome | seconds | date | tests |"
  echo "|---|---|---:|---|---|"
  sed -nE 's/^## (.*): (passed|FAILED) in ([0-9]+) s, ([0-9-]+)(, (.*))?$/| \1 | \2 | \3 | \4 | \6 |/p' "$report"
}

part() { # title, command…
  local title=$1 log
  shift
  wanted "$title" || return 0
  remove_part "$title"
  log=$(mktemp)
  echo "soak: $title"
  local started=$SECONDS
  if "$@" > "$log" 2>&1; then outcome=passed; else outcome=FAILED; failed=1; fi
  {
    echo
    echo "## $title: $outcome in $((SECONDS - started)) s, $(date -u +%Y-%m-%d), $(counts "$log")"
    echo
    echo "    $*"
    echo
    grep -aE -- '--- FAIL|signal: killed' "$log" | head -n 20 | sed 's/^ */    /'
    grep -aE '^(---|ok|FAIL|PASS|\?|=== RUN|fuzz:)|_test\.go:[0-9]+:|panic:' "$log" | grep -avE '^=== RUN|no test files' | tail -n 60 | sed 's/^/    /'
  } >> "$report"
  [ "$outcome" = passed ] || tail -n 40 "$log"
  rm -f "$log"
}

part "arm64: modules, sandboxes, host functions and two example apps, under qemu" \
  env RUNNER_SOAK= tools/test-arm64.sh
part "wazero: its own tests and the specification's, with patches and without" tools/test-wazero.sh
part "wazero: the same for arm64, under qemu" env GOARCH=arm64 tools/test-wazero.sh
part "guarded memories: faults of guests and of Go, and both kinds of code" \
  tools/go.sh test -count=1 -v -timeout 60m ./runtime/guard
part "bench: the module that compares rows with SQLite" go -C tests/bench/entities vet ./...
part "black box: revocation under load, leaks, noisy neighbours, deadlines" \
  tools/go.sh test -p 1 -count=1 -v -timeout 60m ./tests/... -run 'TestRevokeIsImmediate|TestRevokingASession|TestNothingLeaks|TestRequest601|TestManyAddresses|TestRefusedCredentials|TestAHandlerIsServedBesideSpinningOnes|TestDeadlinesAreKept|TestOverloadedHandlers|TestTheMemoryOfTheProcess|TestThirdParty'
part "black box: what the host computes for handlers" \
  tools/go.sh test -count=1 -v -timeout 20m ./tests/sandbox -run 'TestHostWorkCounts|TestAHandlerIsServedBesideHostWork|TestCheckingABody'
part "what the host computes for handlers, in pieces" \
  tools/go.sh test -count=1 -v -timeout 10m ./hostabi -run TestLongWorkIsDoneInPieces
part "black box: all packages of npm in the documentation" \
  tools/go.sh test -count=1 -v -timeout 30m ./tests/languages -run 'TestPackagesRunAsInNode'
part "black box: Flask against another Python, 10,000 requests, and 200 callers without growth" \
  tools/go.sh test -p 1 -count=1 -v -timeout 60m ./tests/languages -run 'TestFlask'
part "black box: an identity provider changes its keys" \
  tools/go.sh test -count=1 -v -timeout 10m ./tests/sessions -run 'TestTokensOfAnOpenIDProvider'
part "black box: callers and log readers that do not read" \
  tools/go.sh test -count=1 -v -timeout 30m ./tests/http ./tests/operations -run 'TestUnreadResponses|TestAnUnreadLog|TestDiscardedLogLines'
part "black box: tables damaged while they are served" \
  tools/go.sh test -count=1 -v -timeout 30m ./tests/rows -run 'TestAServerWithDamagedTables'
part "black box: bytes of a data folder changed, after stops and kills" \
  tools/go.sh test -count=1 -v -timeout 60m ./tests/rows -run 'TestNoDamagedByteOfADataDirectory'
part "files: a hundred kills during uploads, in one node and in three" \
  tools/go.sh test -count=1 -v -timeout 90m ./tests/files -run 'TestNoCrash'
part "ratios: an upload of 100 MB, and rows with files" \
  tools/go.sh test -count=1 -v -timeout 30m ./tests/files -run 'TestAnUploadTakes|TestRowsWithFiles'
part "black box: a million rows are imported" \
  tools/go.sh test -count=1 -v -timeout 30m ./tests/rows -run 'TestAnImportTakes'
part "black box: a full disk, a wrong clock, JSON that nests, modules that compile long" \
  tools/go.sh test -count=1 -v -timeout 30m ./tests/... -run 'TestAFullDisk|TestAQuarantinedClock|TestADeliveryIsRemembered|TestJSONNested|TestRowsWithMany|TestTheBreakerOpensForOneCaller|TestAModuleThatTakes'
part "faults: a hundred kills and thirty power cuts under load, time to ready" \
  tools/go.sh test -count=1 -v -timeout 30m ./tests/operations ./tests/powercut -run 'TestManyKills|PowerCut'
part "faults: a hundred kills under jobs; a million waiting jobs" \
  tools/go.sh test -count=1 -v -timeout 30m ./tests/jobs -run 'TestKilledServers|TestAMillionJobs'
part "faults: idle and slow connections" \
  tools/go.sh test -count=1 -v -timeout 30m ./tests/http -run 'TestSlowloris'
part "faults: twice the load that fits, ten minutes" \
  tools/go.sh test -count=1 -v -timeout 30m ./tests/sandbox -run 'TestTwiceTheLoadThatFits'
part "faults: half an hour of mixed traffic, reloads and backups" \
  tools/go.sh test -count=1 -v -timeout 60m ./tests/operations -run 'TestMixedTraffic'
part "faults: 200 releases under load, deployments killed at each step" \
  tools/go.sh test -count=1 -v -timeout 30m ./tests/operations -run 'TestReleasesAreSwitchedUnderLoad|TestAKillAtAnyStep'
part "faults: bytes of releases changed" \
  tools/go.sh test -count=1 -v -timeout 30m ./tests/rows -run 'TestAChangedByte'
part "ratios: activations, deployments and starts with releases" \
  tools/go.sh test -count=1 -v -timeout 30m ./tests/operations -run 'TestASwitchOfReleases|TestTheSameDeployment|TestReleasesThatAreKept'
part "ratios: reads and joins in a cluster" \
  tools/go.sh test -count=1 -v -timeout 30m ./tests/cluster -run 'TestAReadCosts|TestJoinOf'
part "ratios: metrics, backups and restores" \
  tools/go.sh test -count=1 -v -timeout 30m ./tests/operations -run 'TestMetricsCostFewRequests|TestABackupOfManyRows'
part "ratios: jobs beside requests" \
  tools/go.sh test -count=1 -v -timeout 30m ./tests/jobs -run 'TestEnqueuing|TestManyJobs|TestRequestsStayFast|TestJobsThatWait|TestADueJob'
part "live routes: random worlds against their model, kills, a cluster" \
  tools/go.sh test -count=1 -v -timeout 120m ./tests/live -run 'MissNothing'
part "live routes: 8,000 watches under writes, memory, clients that hang up" \
  tools/go.sh test -count=1 -v -timeout 60m ./tests/live -run 'TestEachWatcher|TestWatchesTake|TestEqualWatches|TestWatchersThatHangUp'
part "ratios: writes and requests beside 8,000 watches" \
  tools/go.sh test -count=1 -v -timeout 30m ./tests/live -run 'TestIdleWatches|TestRequestsAreAnswered'
part "sandbox: isolation, a million requests" \
  tools/go.sh test -count=1 -v -timeout 60m ./runtime/sandbox -skip TestEachRequestOfAProgram
part "sandbox: random programs that wait, against their model, 100,000 requests" \
  tools/go.sh test -count=1 -v -timeout 30m ./runtime/sandbox -run TestEachRequestOfAProgram
part "sandbox: the same, shorter, with the race detector" \
  env RUNNER_SOAK= tools/go.sh test -race -count=1 -v -timeout 30m ./runtime/sandbox ./hostabi ./hostabi/longwork
part "store, rows, keys and jobs with the race detector" \
  env RUNNER_SOAK= tools/go.sh test -race -count=1 -v -timeout 60m ./state/store/... ./state/entity ./keystore ./state/jobs
part "callers, webhooks and outbound calls with the race detector" \
  env RUNNER_SOAK= tools/go.sh test -race -count=1 -v -timeout 30m ./runtime ./runtime/{auth,front,limit} ./state/webhook ./hostabi/outbound
part "wasm: rewritten modules behave as before" \
  tools/go.sh test -count=1 -v -timeout 30m ./internal/wasm
part "black box: all of it, against a binary with the race detector" \
  env RUNNER_TEST_RACE=1 RUNNER_SOAK= tools/go.sh test -count=1 -v -timeout 60m ./tests/{http,keys,sessions,rows,jobs,sandbox,languages,operations,docs}
part "keys: statistics, crashes, revocation" \
  tools/go.sh test -count=1 -v -timeout 30m ./keystore/... ./state/audit/...
part "store: a shared log, and faults of its servers" \
  tools/go.sh test -count=1 -v -timeout 40m ./state/store/etcdlog
part "cluster: nodes that are killed, paused, cut off, restarted, without disk and power under load" \
  tools/go.sh test -count=1 -v -timeout 60m ./node/cluster ./tests/cluster -skip 'TestAReadCosts|TestJoinOf'
part "store: crashes, serializability, damage, full disks" \
  tools/go.sh test -count=1 -v -timeout 60m ./state/store/...
part "rows: against a reference, tenants apart, serializable, crashes" \
  tools/go.sh test -count=1 -v -timeout 60m ./state/entity
part "schemas: rules against a plain interpreter, and a change of each token" \
  tools/go.sh test -count=1 -v -timeout 30m ./schema ./schema/compiler
part "compilers: more options" \
  tools/go.sh test -count=1 -v -timeout 30m ./develop/toolchain/...
part "limits and routes against their models" \
  tools/go.sh test -count=1 -v -timeout 30m ./runtime/limit ./runtime/router ./runtime/auth
while read -r target _; do
  part "$target" tools/fuzz.sh "$target" "${FUZZ_TIME:-60s}"
done < <(tools/fuzz.sh | sort -u -k 1,1)

table > docs/soak.md
echo "soak: wrote $report and docs/soak.md"
exit $failed
