// Package windows_test runs the runner for Windows as an author on Windows does, and together with a node on
// Linux. It needs RUNNER_TEST_GOOS=windows and RUNNER_TEST_EMULATOR, as tools/test-windows.sh sets them.
package windows_test

import (
	"testing"

	"runner.example/tests/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
