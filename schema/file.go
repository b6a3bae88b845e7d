package schema

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
)

// File is the value of a field of type file: what a row has of it. Its bytes are elsewhere, under their digest.
type File struct {
	// ID is a ULID that the host creates. A file keeps it in every row that has it.
	ID string
	// Name is a text for people, which passes CheckFileName. It is never a path.
	Name string
	// Type is the media type that was found from the bytes, which may have parameters.
	Type string
	// Size is in bytes.
	Size   int64
	SHA256 [sha256.Size]byte
}

// Limits of a file's texts, in bytes.
const (
	MaxFileNameBytes = 255
	MaxFileTypeBytes = 255
)

// DefaultFileBytes is the limit of a file whose type declares none.
const DefaultFileBytes = 10 << 20

// fileJSON is the JSON form of a File.
type fileJSON struct {
	ID     *string `json:"id"`
	Name   *string `json:"name"`
	Type   *string `json:"type"`
	Size   *int64  `json:"size"`
	SHA256 *string `json:"sha256"`
}

// FileValue is a file. It panics if the file is not valid: see File.Check.
func FileValue(f File) Value {
	if err := f.Check(); err != nil {
		panic("BUG: file value: " + err.Error())
	}
	text := make([]byte, 0, len(f.SHA256)+len(f.ID)+1+len(f.Type)+len(f.Name))
	text = append(append(append(text, f.SHA256[:]...), f.ID...), byte(len(f.Type)))
	return Value{kind: KindFile, num: f.Size, text: string(append(append(text, f.Type...), f.Name...))}
}

// A packed file is its digest, its id, the length of its type in one byte, its type, its name.
const (
	packedID   = sha256.Size
	packedType = packedID + ulidLength
)

// UnpackFile is the file whose Size and Text are given, without copying the text; false if they are of no file.
func UnpackFile(size int64, text string) (Value, bool) {
	if len(text) <= packedType || size < 0 || len(text) <= packedType+int(text[packedType]) {
		return Value{}, false
	}
	v := Value{kind: KindFile, num: size, text: text}
	f := v.File()
	return v, f.Check() == nil
}

// File returns a KindFile. For other kinds it returns the zero File.
func (v Value) File() File {
	if v.kind != KindFile {
		return File{}
	}
	name := packedType + 1 + int(v.text[packedType])
	return File{
		ID: v.text[packedID:packedType], Name: v.text[name:], Type: v.text[packedType+1 : name], Size: v.num,
		SHA256: [sha256.Size]byte([]byte(v.text[:packedID])),
	}
}

// fileMember is the value of fileTerm.
func (v Value) fileMember(name string) Value {
	if v.kind != KindFile {
		return v // null or absent
	}
	switch f := v.File(); name {
	case "size":
		return IntValue(f.Size)
	case "type":
		return TextValue(f.Type)
	case "name":
		return TextValue(f.Name)
	}
	return absent
}

// Check returns an error if the file is not valid. Its text continues the field's name.
func (f *File) Check() error {
	switch {
	case !IsULID(f.ID):
		return errors.New("must have an id: 26 lower-case letters and digits")
	case f.Size < 0 || f.Size > MaxSafeInteger:
		return errors.New("must have a size from 0 to 2^53-1")
	case len(f.Type) == 0 || len(f.Type) > MaxFileTypeBytes || !isPrintable(f.Type):
		return fmt.Errorf("must have a type of 1 to %d bytes", MaxFileTypeBytes)
	}
	return CheckFileName(f.Name)
}

// CheckFileName returns an error if a text is not the name of a file: of 1 to MaxFileNameBytes bytes, without path parts
// and control characters. Its text continues the field's name.
func CheckFileName(name string) error {
	switch {
	case len(name) == 0 || len(name) > MaxFileNameBytes:
		return fmt.Errorf("must have a name of 1 to %d bytes", MaxFileNameBytes)
	case !utf8.ValidString(name) || !isPrintable(name):
		return errors.New("must have a name without control characters")
	case name == "." || name == ".." || strings.ContainsAny(name, `/\`):
		return errors.New("must have a name without path parts")
	}
	return nil
}

func isPrintable(s string) bool { return !strings.ContainsFunc(s, unicode.IsControl) }

// appendJSON appends the JSON form of the file.
func (f File) appendJSON(dst []byte) []byte {
	dst = appendString(append(dst, `{"id":`...), f.ID)
	dst = appendString(append(dst, `,"name":`...), f.Name)
	dst = appendString(append(dst, `,"type":`...), f.Type)
	dst = strconv.AppendInt(append(dst, `,"size":`...), f.Size, 10)
	dst = hex.AppendEncode(append(dst, `,"sha256":"`...), f.SHA256[:])
	return append(dst, `"}`...)
}

var errFile = errors.New("must be a file: an object with id, name, type, size and sha256")

// parseFile reads what appendJSON returns.
func parseFile(raw []byte) (File, error) {
	var in fileJSON
	if err := json.Unmarshal(raw, &in, json.RejectUnknownMembers(true)); err != nil {
		return File{}, errFile
	}
	if in.ID == nil || in.Name == nil || in.Type == nil || in.Size == nil || in.SHA256 == nil {
		return File{}, errFile
	}
	f := File{ID: *in.ID, Name: *in.Name, Type: *in.Type, Size: *in.Size}
	digest, err := hex.DecodeString(*in.SHA256)
	if err != nil || len(digest) != len(f.SHA256) || strings.ToLower(*in.SHA256) != *in.SHA256 {
		return File{}, errors.New("must have a sha256 of 64 hexadecimal digits, lower case")
	}
	copy(f.SHA256[:], digest)
	return f, f.Check()
}

// checkFile returns an error if a file is not within the type's bounds.
func (t *Type) checkFile(f File) error {
	switch {
	case t.MaxBytes > 0 && f.Size > t.MaxBytes:
		return fmt.Errorf("must be at most %d bytes, and the file has %d", t.MaxBytes, f.Size)
	case !t.allows(f.Type):
		return fmt.Errorf("must be of type %s, and the file is of type %s", strings.Join(t.MediaTypes, ", "), f.Type)
	}
	return nil
}

// allows reports whether the type allows files of a media type, whose parameters are ignored.
func (t *Type) allows(media string) bool {
	media, _, _ = strings.Cut(media, ";")
	media = strings.ToLower(strings.TrimSpace(media))
	return t.MediaTypes == nil || slices.ContainsFunc(t.MediaTypes, func(allowed string) bool {
		group, any := strings.CutSuffix(allowed, "*")
		return media == allowed || any && strings.HasPrefix(media, group)
	})
}
