package secret

import (
	"os"

	"runner.example/internal/system/disk"
)

// File is a new, private file for a secret, with mode 0600.
type File struct {
	Path string
	file *os.File
}

// CreateFile creates the file. It never replaces one: then the error matches fs.ErrExist.
func CreateFile(path string) (*File, error) {
	file, err := disk.CreatePrivate(path)
	if err != nil {
		return nil, err
	}
	return &File{path, file}, nil
}

// Write writes the secret and a newline, which a reader of a secret's file leaves out, and syncs the
// file.
func (f *File) Write(secret string) error {
	_, err := f.file.WriteString(secret + "\n")
	if err == nil {
		err = f.file.Sync()
	}
	return err
}

// Close closes the file, and removes it unless keep is set. f may be nil.
func (f *File) Close(keep bool) {
	if f == nil {
		return
	}
	_ = f.file.Close() // written to disk by Write
	if !keep {
		_ = os.Remove(f.Path)
	}
}
