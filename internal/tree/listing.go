package tree

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// header begins a listing.
const header = "runner tree\n"

// Listing returns the listing of the tree.
func (t *Tree) Listing() []byte { return appendListing(nil, t.files) }

func appendListing(to []byte, files []File) []byte {
	to = append(to, header...)
	for _, f := range files {
		to = hex.AppendEncode(to, f.SHA256[:])
		to = append(to, ' ')
		to = strconv.AppendInt(to, f.Size, 10)
		to = append(to, ' ')
		to = append(to, f.Path...)
		to = append(to, 0)
	}
	return to
}

// Parse reads a listing. The error says what is wrong with it; it is an *InvalidError if the listing can be read, and is
// not that of a valid tree.
func Parse(listing []byte) ([]File, error) {
	if len(listing) > MaxListingBytes {
		return nil, fmt.Errorf("the listing has %d bytes, and the limit is %d", len(listing), MaxListingBytes)
	}
	rest, ok := bytes.CutPrefix(listing, []byte(header))
	if !ok {
		return nil, errors.New("not a listing of files")
	}
	files := make([]File, 0, min(MaxFiles, bytes.Count(rest, []byte{0})))
	for len(rest) > 0 {
		if len(files) == MaxFiles {
			return nil, &InvalidError{[]string{fmt.Sprintf("there are more than %d files", MaxFiles)}}
		}
		end := bytes.IndexByte(rest, 0)
		if end < 0 {
			return nil, fmt.Errorf("the listing is cut after %d files", len(files))
		}
		var f File
		digest, line, ok := bytes.Cut(rest[:end], []byte(" "))
		size, path, sized := bytes.Cut(line, []byte(" "))
		_, err := hex.Decode(f.SHA256[:], digest[:min(len(digest), 2*len(f.SHA256))])
		if !ok || !sized || err != nil {
			return nil, fmt.Errorf("entry %d of the listing is invalid", len(files)+1)
		}
		f.Size, _ = strconv.ParseInt(string(size), 10, 64) // another text of a number is found below
		f.Path = string(path)
		files, rest = append(files, f), rest[end+1:]
	}
	if wrong := check(files); len(wrong) > 0 {
		return nil, &InvalidError{wrong}
	}
	if !bytes.Equal(appendListing(make([]byte, 0, len(listing)), files), listing) {
		return nil, errors.New("the listing is not in its canonical form")
	}
	for i := range files[1:] {
		if files[i].Path >= files[i+1].Path {
			return nil, errors.New("the listing is not sorted")
		}
	}
	return files, nil
}

// Quoted returns a path for messages: as it is, or in quotes with escapes if it has other than printable characters.
func Quoted(path string) string {
	if path == "" || !utf8.ValidString(path) || strings.ContainsFunc(path, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(path)
	}
	return path
}
