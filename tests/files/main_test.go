// Package files_test tests files: uploads, and what handlers do with them.
package files_test

import (
	"testing"

	"runner.example/tests/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
