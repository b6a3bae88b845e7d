package recorded_test

import (
	"testing"

	"runner.example/tests/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
