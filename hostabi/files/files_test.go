package files_test

import (
	"errors"
	"sync"
	"testing"

	"runner.example/hostabi/files"
)

// A content is read until that succeeds, and then never again.
func TestAContentIsReadAgainAfterAnError(t *testing.T) {
	down, reads := errors.New("the disk is gone"), 0
	answers := []struct {
		content string
		err     error
	}{{"", down}, {"short", nil}, {"content", nil}}
	root := files.NewRoot()
	err := root.Add(files.File{Path: "file", Size: 7, Read: func() ([]byte, error) {
		a := answers[reads]
		reads++
		return []byte(a.content), a.err
	}})
	if err != nil {
		t.Fatal(err)
	}
	file := root.Child("file")
	if _, err := file.Content(); !errors.Is(err, down) {
		t.Errorf("the first reader gets %v, want %v", err, down)
	}
	if content, err := file.Content(); err == nil {
		t.Errorf("a content of another size is given: %q", content)
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if content, err := file.Content(); err != nil || string(content) != "content" {
				t.Errorf("a later reader gets %q, %v", content, err)
			}
		})
	}
	all.Wait()
	if reads != len(answers) {
		t.Errorf("it was read %d times, want %d", reads, len(answers))
	}
}
