// Package live_test has the tests of live routes that need many watchers: against a plain model of rows and rules, with
// kills and in a cluster, and what thousands of watches cost.
package live_test

import (
	"testing"

	"runner.example/tests/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
