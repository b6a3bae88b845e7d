#!/usr/bin/env bash
# Builds tests and the runner for Windows, and runs them under wine (tools/wine.sh): the packages that differ between
# systems, and black-box tests. It needs root. The tests run in their short form: files are synced slowly there.
# With the argument short it runs some of them, and only if the directory of wine is there.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/get.sh

umask 077 # the runner trusts no directory that others can write to, and a new one has the permissions of the one above
export RUNNER_TEST_GOOS=windows RUNNER_TEST_EMULATOR=$PWD/tools/wine.sh
ready=${XDG_CACHE_HOME:-$HOME/.cache}/runner-tests/wine-13/ready
if [ "${1:-}" = short ] && { [ ! -e "$ready" ] || [ "$(id -u)" != 0 ]; }; then
  exit # tools/skipped.sh says so
fi
tools/fetch-engine.sh

bin=$(mktemp -d)
trap 'rm -rf "$bin"' EXIT
failed=0

# unit runs the tests of packages for Windows; $1 matches the names of those that are skipped.
unit() { # pattern, packages…
  local skipped=$1 dir
  shift
  for dir in $(GOOS=windows tools/go.sh list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.Dir}}{{end}}' "$@"); do
    say "$dir"
    CGO_ENABLED=0 GOOS=windows tools/go.sh test -c -vet=off -o "$bin/test.exe" "$dir"
    (cd "$dir" && timeout 600 "$RUNNER_TEST_EMULATOR" "$bin/test.exe" -test.short -test.timeout 9m -test.skip "$skipped") || failed=1
  done
}

# blackbox runs tests of a package that match a pattern.
blackbox() { # package, pattern
  say "$1"
  tools/go.sh test -vet=off -count=1 -timeout 20m "$1" -run "$2" || failed=1
}

# Compilers are not there under wine, and the scripts that fetch files are for bash. In the last one, calls of
# TypeScript nest less deep than on Linux, as with portable memory there.
foreign='TestAMissingAssemblyScriptCompiler|TestRustIsBuilt|TestATargetThatACrate|TestANamedTarget|TestToolchainsDoNotGet|TestAModuleIsRemovedWithItsSource|TestGoSaysHowToGet'
foreign+='|TestInfiniteRecursionIsACatchableError'

if [ "${1:-}" = short ]; then
  blackbox ./tests/windows TestAnAuthorWorksOnWindows
  exit $failed
fi

unit '^$' ./internal/system/... ./internal/tree ./internal/atomicio ./internal/secret ./internal/telemetry ./schema/syntax ./runtime/pages ./node/backup ./node/release \
  ./state/store/{commitlog,datadir,files,frame,lag,retry,space} ./develop/scaffold
unit "$foreign" ./develop/toolchain/...
unit '^$' ./runtime/sandbox
blackbox ./tests/windows .
blackbox ./tests/rows '^(TestTheOrdersExampleKeepsItsRules|TestTheTrackerExampleIsolatesTenants)$'
blackbox ./tests/keys '^(TestATokenIsShownOnce|TestNoTokenInAnyOutput|TestCommandsWorkWithAndWithoutAServer|TestKeysSurviveACrash)$'
blackbox ./tests/jobs '^(TestOperatorsSeeAndChangeJobs|TestJobsAreEnqueuedWithoutAServerAndRunWhenItStarts)$'
blackbox ./tests/http '^(TestAnInvalidJSONBodyIsReportedWithItsPosition|TestHostsOfTheSettingsAreServed|TestRequest601OfTheWindowIsRefused)$'
blackbox ./tests/operations '^(TestASavedFileIsServed|TestABrokenSaveIsReportedAndTheOldVersionServed|TestADeletedHandlerIsReportedAndTheOldVersionServed|TestReloadPrintsWhatHasChanged|TestABackupReplacesNothingWithoutForce)$'
exit $failed
