// Package live_test tests live routes with many watchers: against a plain model of rows and rules, with servers that are
// killed, and in a cluster. It also measures what thousands of watches cost.
package live_test

import (
	"testing"

	"runner.example/tests/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
