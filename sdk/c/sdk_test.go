package c_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// program is testdata/reader.c for this machine, compiled once with sanitizers.
var program struct {
	sync.Once
	dir string
	err error
}

func TestMain(m *testing.M) {
	status := m.Run()
	if program.dir != "" {
		_ = os.RemoveAll(program.dir)
	}
	os.Exit(status)
}

func compile(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("compiles C: left out by -short")
	}
	file := filepath.Join("testdata", "reader.c")
	if _, err := os.ReadFile(file); err != nil { // so that a change of it invalidates the cached result
		t.Fatal(err)
	}
	program.Do(func() {
		if program.dir, program.err = os.MkdirTemp("", "runner-c-"); program.err != nil {
			return
		}
		program.err = errors.New("clang is missing: run tools/setup.sh")
		for _, clang := range []string{"clang-22", "clang-19", "clang"} {
			if _, err := exec.LookPath(clang); err != nil {
				continue
			}
			said, err := exec.Command(clang, "-g", "-O1", "-Wall", "-Wextra", "-Werror", "-fsanitize=address,undefined",
				"-fno-sanitize-recover=all", "-ffunction-sections", "-Wl,--gc-sections", "-I.", "-DRUNNER_CHUNK=0",
				"-o", filepath.Join(program.dir, "program"), file, "-lm").CombinedOutput()
			if program.err = err; err != nil {
				program.err = fmt.Errorf("%s: %w\n%s", clang, err, said)
			}
			return
		}
	})
	if program.err != nil {
		t.Fatal(program.err)
	}
	return filepath.Join(program.dir, "program")
}

// reader is testdata/reader.c at work.
type reader struct {
	t   *testing.T
	in  io.WriteCloser
	out io.Reader
	cmd *exec.Cmd
	err bytes.Buffer
}

func newReader(t *testing.T, arguments ...string) *reader {
	r := &reader{t: t}
	r.cmd = exec.Command(compile(t), arguments...)
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
	random, rounds := newRandom(t), 5000
	if os.Getenv("RUNNER_SOAK") != "" {
		rounds = 2_000_000
	}
	r := newReader(t)
	defer r.close()
	for range rounds {
		r.check(mutate(random, []byte(documents[random.IntN(len(documents)-1)])))
	}
}

// Values with texts of all lengths, whose characters lie at all places of a word, and such values
// that are changed here and there.
func TestAnyValueIsReadAndWrittenLikeOtherLibraries(t *testing.T) {
	random, rounds := newRandom(t), 2000
	if os.Getenv("RUNNER_SOAK") != "" {
		rounds = 1_000_000
	}
	r := newReader(t)
	defer r.close()
	for range rounds {
		text := appendValue(random, nil, 4)
		r.check(text)
		r.check(mutate(random, text))
	}
}

// Each number is converted to a double and back: it must be the double that strconv makes of the text, in as
// few digits as strconv writes.
func TestNumbersAreConvertedLikeByStrconv(t *testing.T) {
	random, rounds := newRandom(t), 200
	if os.Getenv("RUNNER_SOAK") != "" {
		rounds = 200_000
	}
	r := newReader(t, "numbers")
	defer r.close()
	for range rounds {
		var texts, made []json.Number
		for range 100 {
			texts = append(texts, json.Number(appendNumber(random, nil)))
		}
		texts = append(texts, "5e-324", "2.2250738585072014e-308", "1.7976931348623157e308", "0.00390625", "0.0039062499999999996",
			"562949953421312.25", "562949953421312.125", "999999999999999.9", "999999999999999.99", "1e15", "9007199254740993", "9007199254740993.0",
			"-0", "0.5", "0.1", "0.3", "2.675", "1e23", "8.5e22", "123456789012345678", "1e22", "1e-22", "0e9999",
			json.Number("0."+strings.Repeat("0", 9999)+"1e10000"), json.Number("1"+strings.Repeat("0", 50)+"e-50"))
		text, err := json.Marshal(texts)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(r.read(text), &made); err != nil || len(made) != len(texts) {
			t.Fatalf("%s: %v", text, err)
		}
		for i, text := range texts {
			want, err1 := text.Float64()
			got, err2 := made[i].Float64()
			if err := errors.Join(err1, err2); err != nil || got != want {
				t.Fatalf("%s becomes %s: %v", text, made[i], err)
			}
			if few := strconv.FormatFloat(want, 'e', -1, 64); math.Abs(want) > 1e-300 && digits(string(made[i])) != digits(few) {
				t.Fatalf("%s becomes %s, not %s", text, made[i], few)
			}
		}
	}
}

// digits returns the digits of a number from the first one to the last one that is not 0.
func digits(number string) string {
	number, _, _ = strings.Cut(number, "e")
	return strings.Trim(strings.NewReplacer(".", "", "-", "").Replace(number), "0")
}

func newRandom(t *testing.T) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 1))
}

// appendValue appends a value, with lists and objects in it up to a depth.
func appendValue(random *rand.Rand, text []byte, depth int) []byte {
	text = appendBlanks(random, text)
	kinds := 7
	if depth == 0 {
		kinds = 5
	}
	switch kind := random.IntN(kinds); kind {
	case 0:
		text = append(text, []string{"true", "false", "null"}[random.IntN(3)]...)
	case 1, 2:
		text = appendNumber(random, text)
	case 3, 4:
		text = appendString(random, text)
	default:
		text = append(text, "[{"[kind-5])
		for i := range random.IntN(5) {
			if i > 0 {
				text = append(text, ',')
			}
			if kind == 6 {
				text = append(appendBlanks(random, appendString(random, appendBlanks(random, text))), ':')
			}
			text = appendValue(random, text, depth-1)
		}
		text = append(appendBlanks(random, text), "]}"[kind-5])
	}
	return appendBlanks(random, text)
}

func appendBlanks(random *rand.Rand, text []byte) []byte {
	for random.IntN(4) == 0 {
		text = append(text, " \t\r\n"[random.IntN(4)])
	}
	return text
}

// appendNumber appends a number, of which many are those of doubles or near to them.
func appendNumber(random *rand.Rand, text []byte) []byte {
	switch random.IntN(5) {
	case 0:
		return strconv.AppendInt(text, random.Int64N(2_000_000)-1_000_000, 10)
	case 1: // a price
		return strconv.AppendFloat(text, float64(random.IntN(1_000_000))/100*float64(random.IntN(100)), 'f', -1, 64)
	case 2: // the digits of a double, more or less of them
		value := math.Ldexp(random.Float64(), random.IntN(120)-60)
		return strconv.AppendFloat(text, value, "eg"[random.IntN(2)], 1+random.IntN(25), 64)
	case 3: // any double
		for {
			if value := math.Float64frombits(random.Uint64()); !math.IsNaN(value) && !math.IsInf(value, 0) {
				return strconv.AppendFloat(text, value, 'g', -1, 64)
			}
		}
	}
	// Some digits with a point somewhere, and an exponent.
	text = strconv.AppendUint(text, random.Uint64()>>random.IntN(64), 10)
	if random.IntN(2) == 0 {
		text = fmt.Appendf(text, ".%0*d", 1+random.IntN(20), random.Uint64()>>random.IntN(64))
	}
	if random.IntN(2) == 0 {
		text = fmt.Appendf(text, "e%+d", random.IntN(60)-30)
	}
	return text
}

// appendString appends a string of up to 40 characters, most of which are plain.
func appendString(random *rand.Rand, text []byte) []byte {
	others := []string{`\"`, `\\`, `\/`, `\b`, `\n`, `\u0000`, `\u001f`, `\u00e9`, `\ud83d\ude00`, "é", "€", "😀", "\x7f", " "}
	text = append(text, '"')
	rare := 1 + random.IntN(40)
	for range random.IntN(40) {
		if random.IntN(rare) == 0 {
			text = append(text, others[random.IntN(len(others))]...)
		} else {
			text = append(text, byte('a'+random.IntN(26)))
		}
	}
	return append(text, '"')
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
