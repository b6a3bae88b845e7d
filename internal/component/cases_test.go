package component_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"runner.example/internal/component"
	"runner.example/internal/wasm"
)

// specCase is a case of a text in testdata, made by testdata/make.mjs.
type specCase struct {
	What string `json:"what"`
	Wasm []byte `json:"wasm"`
	JCO  string `json:"jco"` // what jco's code does, of a case in run.txt
}

func specCases(t testing.TB, name string) []specCase {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name + ".txt")
	if err != nil {
		t.Fatal(err)
	}
	made, err := os.ReadFile("testdata/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Of    string     `json:"of"`
		Cases []specCase `json:"cases"`
	}
	if err := json.Unmarshal(made, &file); err != nil {
		t.Fatal(err)
	}
	if sum := sha256.Sum256(text); hex.EncodeToString(sum[:]) != file.Of {
		t.Fatalf("testdata/%[1]s.json is not of testdata/%[1]s.txt: make it with testdata/make.mjs", name)
	}
	return file.Cases
}

func TestComponentsAreAcceptedAndRefusedAsTheSpecificationSays(t *testing.T) {
	for _, c := range specCases(t, "cases") {
		verdict, what, _ := strings.Cut(c.What, ": ")
		_, err := component.Read(c.Wasm, wasm.DefaultLimits())
		if verdict == "accepted" {
			if err != nil {
				t.Errorf("%s: %v", what, err)
			}
			continue
		}
		what, want, _ := strings.Cut(what, ": ")
		var is *component.Error
		switch {
		case err == nil:
			t.Errorf("%s: is accepted", what)
		case !strings.Contains(err.Error(), want):
			t.Errorf("%s: %v\nwant %s", what, err, want)
		case !errors.As(err, &is) || is.At < 8 || is.At >= len(c.Wasm) || strings.Contains(err.Error(), "\n"):
			t.Errorf("%s: the error is not one line with a place in the file: %v", what, err)
		}
	}
}
