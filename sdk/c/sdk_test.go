package c_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// compile makes a program for this machine of a file of testdata, with sanitizers.
func compile(t *testing.T, file string, flags ...string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("compiles C: left out by -short")
	}
	if _, err := os.ReadFile(filepath.Join("testdata", file)); err != nil { // so that a change of it invalidates the cached result
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "program")
	args := append([]string{
		"-g", "-O1", "-Wall", "-Wextra", "-Werror", "-fsanitize=address,undefined", "-fno-sanitize-recover=all",
		"-ffunction-sections", "-Wl,--gc-sections", "-I.", "-o", out, filepath.Join("testdata", file), "-lm",
	}, flags...)
	for _, clang := range []string{"clang-22", "clang-19", "clang"} {
		if _, err := exec.LookPath(clang); err != nil {
			continue
		}
		if said, err := exec.Command(clang, args...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", clang, err, said)
		}
		return out
	}
	t.Fatal("clang is missing: run tools/setup.sh")
	return ""
}

// reader is testdata/reader.c at work.
type reader struct {
	t   *testing.T
	in  io.WriteCloser
	out io.Reader
	cmd *exec.Cmd
	err bytes.Buffer
}

func newReader(t *testing.T) *reader {
	r := &reader{t: t}
	r.cmd = exec.Command(compile(t, "reader.c", "-DRUNNER_CHUNK=0"))
	r.cmd.Env = append(os.Environ(), "ASAN_OPTIONS=detect_leaks=0")
	r.cmd.Stderr = &r.err
	var err1, err2 error
	r.in, err1 = r.cmd.StdinPipe()
	r.out, err2 = r.cmd.StdoutPipe()
	if err := errors.Join(err1, err2, r.cmd.Start()); err != nil {
		t.Fatal(err)
	}
	return r
}

// read returns the text as the reader wrote it back, empty if it is not JSON.
func (r *reader) read(text []byte) []byte {
	r.t.Helper()
	message := append(binary.LittleEndian.AppendUint32(nil, uint32(len(text))), text...)
	var size [4]byte
	_, err1 := r.in.Write(message)
	_, err2 := io.ReadFull(r.out, size[:])
	made := make([]byte, binary.LittleEndian.Uint32(size[:]))
	_, err3 := io.ReadFull(r.out, made)
	if err := errors.Join(err1, err2, err3); err != nil {
		waited := r.cmd.Wait()
		r.t.Fatalf("it ended (%v, %v) with %q:\n%s", err, waited, text, r.err.String())
	}
	return made
}

func (r *reader) close() {
	if err := errors.Join(r.in.Close(), r.cmd.Wait()); err != nil {
		r.t.Errorf("%v\n%s", err, r.err.String())
	}
}

// documents are what the texts of the tests are made of.
var documents = []string{
	`null`, `true`, `[]`, `{}`, ` [1, 2.5, -0, 1e5, 1E-7, 0.1, 123456789012345678901234567890] `,
	`{"a":"b","a":{"c":[null,false,"x"]}}`, `"\u00e9\ud83d\ude00\"\\\/\b\f\n\r\t é😀"`, `"\ud800x"`, `"\ude00"`, `"\ud800\ud800"`,
	`{"":0}`, `[[[[[[[[]]]]]]]]`, "\"\xff\"", "\"\xed\xa0\x80\"", "\"\xf4\x90\x80\x80\"", "\"\xc0\x80\"", "\"a\x00b\"", `"\u0000"`,
	`{"a":1,}`, `[1 2]`, `01`, `1.`, `.1`, `+1`, `-`, `1e`, `tru`, `nul`, `"`, `"\`, `"\u12`, `{"a"`, `{"a":`, `[`, `[1,`, `{1:2}`, `'a'`, `NaN`, `[1]x`, "\ufeff[]", ``,
	"\x00\x00\x00\x00\x00\x00\x00\x80", "\xff\xff\xff\xff\xff\xff\xff\x7f", "\x9a\x99\x99\x99\x99\x99\xb9\x3f", "\x01\x00\x00\x00\x00\x00\x00\x00",
	strings.Repeat("[", 64) + strings.Repeat("]", 64), strings.Repeat("[", 65) + strings.Repeat("]", 65),
	strings.Repeat(`{"a":`, 64) + "1" + strings.Repeat("}", 64), strings.Repeat("[", 100_000),
}

func TestJSONIsReadAndWrittenLikeOtherLibraries(t *testing.T) {
	r := newReader(t)
	defer r.close()
	for _, d := range documents {
		r.check([]byte(d))
	}
}

// Texts that are nearly JSON, compared with encoding/json, under sanitizers.
func TestAnyTextIsParsedOrRefusedLikeOtherLibraries(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	rounds := 5000
	if os.Getenv("RUNNER_SOAK") != "" {
		rounds = 2_000_000
	}
	r := newReader(t)
	defer r.close()
	for range rounds {
		r.check(mutate(random, []byte(documents[random.IntN(len(documents)-1)])))
	}
}

// check compares with encoding/json, which differs where the text is deep, not UTF-8 or has half
// of a surrogate pair: there with jsontext.
func (r *reader) check(text []byte) {
	r.t.Helper()
	made := r.read(text)
	valid := json.Valid(text) && jsontext.Value(text).IsValid(jsontext.AllowDuplicateNames(true)) && depth(text) <= 64
	if valid != (len(made) > 0) {
		r.t.Fatalf("%q: valid is %v, it makes %q of it", text, valid, made)
	}
	if !valid {
		return
	}
	var want, got any
	if err := decode(text, &want); err != nil {
		r.t.Fatal(err)
	}
	if err := decode(made, &got); err != nil {
		r.t.Fatalf("%q becomes %q: %v", text, made, err)
	}
	if !reflect.DeepEqual(got, want) {
		r.t.Fatalf("%q becomes %q", text, made)
	}
}

// decode keeps numbers as they are written.
func decode(text []byte, to *any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return d.Decode(to)
}

// depth is how deep lists and objects lie in each other in valid JSON.
func depth(text []byte) (most int) {
	d := json.NewDecoder(bytes.NewReader(text))
	for now := 0; ; most = max(most, now) {
		token, err := d.Token()
		if err != nil {
			return most
		}
		switch token {
		case json.Delim('['), json.Delim('{'):
			now++
		case json.Delim(']'), json.Delim('}'):
			now--
		}
	}
}

// mutate changes a text here and there.
func mutate(random *rand.Rand, text []byte) []byte {
	const salt = `{}[]",:\u019eE+-.tfn ` + "\x00\x1f\xff\xed\xa0\x80é"
	for range 1 + random.IntN(4) {
		at := random.IntN(len(text) + 1)
		switch random.IntN(4) {
		case 0:
			text = slices.Insert(text, at, salt[random.IntN(len(salt))])
		case 1:
			text = text[:at]
		case 2:
			if at < len(text) {
				text[at] = salt[random.IntN(len(salt))]
			}
		case 3:
			text = slices.Insert(text, at, []byte(documents[random.IntN(len(documents)-2)])...)
		}
	}
	return text
}
