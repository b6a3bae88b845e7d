package main

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRunnerTOMLIsGeneratedFromTheOptions(t *testing.T) {
	want, err := runnerTOML("../../..")
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../../runner.toml")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("run go generate ./cmd/runner (-generated +file):\n%s", diff)
	}
}
