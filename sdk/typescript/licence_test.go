package typescript_test

import (
	"bytes"
	"os"
	"testing"
)

// An SDK that lies beside an app goes where the app goes, and its licence with it.
func TestEverySDKHasALicenceFile(t *testing.T) {
	want, err := os.ReadFile("../../LICENSE")
	if err != nil {
		t.Fatal(err)
	}
	for _, sdk := range []string{"assemblyscript", "c", "go", "rust", "typescript"} {
		if got, err := os.ReadFile("../" + sdk + "/LICENSE"); err != nil || !bytes.Equal(got, want) {
			t.Errorf("sdk/%s/LICENSE is not the project's: %v", sdk, err)
		}
	}
}
