package main

import (
	"bytes"
	"os"
	"testing"
)

func TestGeneratedFilesFollowTheTables(t *testing.T) {
	files, err := render("../../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		have, err := os.ReadFile(f.path)
		if err != nil {
			t.Error(err)
		} else if !bytes.Equal(have, f.content) {
			t.Errorf("%s differs from the tables of hostabi/abi: run `go generate ./hostabi/abi` and read the difference", f.path)
		}
	}
}
