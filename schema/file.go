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

// File is the value of a field of type file. It describes the file; the bytes are stored under SHA256, outside of the row.
type File struct {
	// ID is a ULID that the host creates. It is the same in all rows that have the file.
	ID string
	// Name is for people, and passes CheckFileName. It is never used as a path.
	Name string
	// Type is the media type that the bytes have. It may have parameters.
	Type string
	// Size is in bytes.
	Size   int64
	SHA256 [sha256.Size]byte
}

// Limits of Name and Type.
const (
	MaxFileNameBytes = 255
	MaxFileTypeBytes = 255
)

// DefaultFileBytes is the largest size of a file whose field declares none.
const DefaultFileBytes = 10 << 20

// fileJSON is the JSON form of a File.
type fileJSON struct {
	ID     *string `json:"id"`
	Name   *string `json:"name"`
	Type   *string `json:"type"`
	Size   *int64  `json:"size"`
	SHA256 *string `json:"sha256"`
}

// FileValue returns the value of a file. It panics if the file does not pass Check.
func FileValue(f File) Value {
	if err := f.Check(); err != nil {
		panic("BUG: file value: " + err.Error())
	}
	text := make([]byte, 0, len(f.SHA256)+len(f.ID)+1+len(f.Type)+len(f.Name))
	text = append(append(append(text, f.SHA256[:]...), f.ID...), byte(len(f.Type)))
	return Value{kind: KindFile, num: f.Size, text: string(append(append(text, f.Type...), f.Name...))}
}

// The text of a Value has a packed file:
//
//	digest, 32 | id, 26 | length of the type, 1 | type | name
const (
	packedID   = sha256.Size
	packedType = packedID + ulidLength
)

// UnpackFile returns the value of the file with this size and packed text. It does not copy the text. ok is false if the
// text is not a packed file.
func UnpackFile(size int64, text string) (v Value, ok bool) {
	if len(text) <= packedType || size < 0 || len(text) <= packedType+int(text[packedType]) {
		return Value{}, false
	}
	v = Value{kind: KindFile, num: size, text: text}
	f := v.File()
	return v, f.Check() == nil
}

// File returns the file of a KindFile. For other kinds it returns the zero File.
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

// fileMember returns the size, the type or the name of a file, for rules. Null and absent have themselves as members.
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

// Check returns an error if the file is not valid. The name of a field and the text of the error make a sentence.
func (f *File) Check() error {
	switch {
	case !IsULID(f.ID):
		return errors.New("must have an id: 26 lower-case letters and digits")
	case f.Size < 0 || f.Size > MaxSafeInteger:
		return errors.New("must have a size from 0 to 2^53-1")
	case len(f.Type) == 0 || len(f.Type) > MaxFileTypeBytes || strings.ContainsFunc(f.Type, unicode.IsControl):
		return fmt.Errorf("must have a type of 1 to %d bytes", MaxFileTypeBytes)
	}
	return CheckFileName(f.Name)
}

// CheckFileName returns an error if a file cannot have this name. A name has 1 to MaxFileNameBytes bytes, is UTF-8, has no
// characters that IsAllowedInFileName refuses, and is not a path. The text of the error is as that of Check.
func CheckFileName(name string) error {
	switch {
	case len(name) == 0 || len(name) > MaxFileNameBytes:
		return fmt.Errorf("must have a name of 1 to %d bytes", MaxFileNameBytes)
	case !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return !IsAllowedInFileName(r) }):
		return errors.New("must have a name without control characters, and without those that change the direction of text")
	case name == "." || name == ".." || strings.ContainsAny(name, `/\`):
		return errors.New("must have a name that is not a path")
	}
	return nil
}

// IsAllowedInFileName reports whether a character is allowed in the name of a file. Control characters are not, and neither
// are characters that change the direction of text or begin a new line.
func IsAllowedInFileName(r rune) bool {
	return !unicode.IsControl(r) && !unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp)
}

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

// parseFile reads what appendJSON has appended.
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

// checkFile returns an error if the type does not allow the file.
func (t *Type) checkFile(f File) error {
	switch {
	case t.MaxBytes > 0 && f.Size > t.MaxBytes:
		return fmt.Errorf("must be at most %d bytes, and the file has %d", t.MaxBytes, f.Size)
	case !t.allows(f.Type):
		return fmt.Errorf("must be of type %s, and the file is of type %s", strings.Join(t.MediaTypes, " or "), f.Type)
	}
	return nil
}

// allows reports whether the type allows files of a media type. It ignores parameters of the media type.
func (t *Type) allows(media string) bool {
	media, _, _ = strings.Cut(media, ";")
	media = strings.ToLower(strings.TrimSpace(media))
	return t.MediaTypes == nil || slices.ContainsFunc(t.MediaTypes, func(allowed string) bool {
		group, any := strings.CutSuffix(allowed, "*")
		return media == allowed || any && strings.HasPrefix(media, group)
	})
}
