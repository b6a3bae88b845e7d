package keystore_test

import (
	"go/parser"
	"go/token"
	"hash/crc32"
	"math"
	"math/big"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"runner.example/keystore"
)

func TestTokensOfAnIndependentImplementationAreValid(t *testing.T) {
	// Random part and its CRC-32 in base62, computed by another program.
	for _, s := range []string{
		"0000000000000000000000000000002C8GjS",
		"abcdefghijklmnopqrstuvwxyzABCD4dNndU",
		"zQ4zQ4zQ4zQ4zQ4zQ4zQ4zQ4zQ4zQ44LhL80",
		"drrYjTdd6emrCGjTGYv3HF2s7u0rih00gEpD", // leading zeros
	} {
		for _, prefix := range []string{"rnk_", "or_", "abcd1234_"} {
			if !keystore.ValidToken([]byte(prefix + s)) {
				t.Errorf("%s%s is refused", prefix, s)
			}
		}
	}
}

func TestANewTokenIsValidAndEveryChangeOfOneCharacterIsNot(t *testing.T) {
	text := keystore.NewToken("ord").Reveal()
	if !keystore.ValidToken([]byte(text)) || !strings.HasPrefix(text, "ord_") || len(text) != 40 {
		t.Fatal("the new token is not valid")
	}
	for i := range text {
		for c := range 256 {
			b := []byte(text)
			if b[i] == byte(c) || i < 3 && 'a' <= c && c <= 'z' || 0 < i && i < 3 && '0' <= c && c <= '9' {
				continue // another prefix, and the checksum is not over the prefix
			}
			b[i] = byte(c)
			if keystore.ValidToken(b) {
				t.Errorf("valid with byte %#x at %d", c, i)
			}
		}
	}
}

func TestMalformedTokensAreNotValid(t *testing.T) {
	text := keystore.NewToken("ord").Reveal()
	body := text[len("ord_"):]
	for name, s := range map[string]string{
		"empty": "", "prefix alone": "ord_", "body alone": body, "no prefix": "_" + body, "prefix of one": "o_" + body,
		"prefix of nine": "abcdefghi_" + body, "capital": "Ord_" + body, "digit first": "1rd_" + body, "hyphen": "o-d_" + body,
		"two": text + text, "longer": text + "0", "shorter": text[:len(text)-1], "blank before": " " + text, "blank behind": text + " ",
		"newline": text + "\n", "another separator": "ord-" + body, "in a long text": strings.Repeat("a", 10_000) + text,
	} {
		if keystore.ValidToken([]byte(s)) {
			t.Errorf("%s: valid", name)
		}
	}
}

func TestEveryCharacterOfATokenIsEquallyLikely(t *testing.T) {
	const perToken = 30
	characters := 100_000
	if os.Getenv("RUNNER_SOAK") != "" {
		characters = 30_000_000 // and so a million tokens
	}
	counts := map[byte]int{}
	seen := map[string]bool{}
	total := 0
	for total < characters {
		text := keystore.NewToken("ord").Reveal()
		if seen[text] {
			t.Fatalf("a token was made twice within %d", len(seen))
		}
		seen[text] = true
		for _, c := range []byte(text[4 : 4+perToken]) {
			counts[c]++
		}
		total += perToken
	}
	if len(counts) != 62 {
		t.Fatalf("%d different characters, want 62", len(counts))
	}
	expected := float64(total) / 62
	chi := 0.0
	for _, n := range counts {
		d := float64(n) - expected
		chi += d * d / expected
	}
	// 61 degrees of freedom: more than 170 in 3 of 10¹² runs. Without the
	// rejection of bytes from 248 on, 100 000 characters give about 900.
	if chi > 170 {
		t.Errorf("chi-square is %.1f over %d characters", chi, total)
	}
}

func TestOnlyTheSystemsRandomnessIsUsed(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range file.Imports {
			if strings.HasPrefix(spec.Path.Value, `"math/rand`) {
				t.Errorf("%s imports %s", name, spec.Path.Value)
			}
		}
	}
}

// guess returns a valid token that differs from another one in the last random character.
func guess(token string, last byte) string {
	const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	prefix, rest, _ := strings.Cut(token, "_")
	random := rest[:29] + string(last)
	sum := crc32.ChecksumIEEE([]byte(random))
	var check [6]byte
	for i := range check {
		check[5-i] = digits[sum%62]
		sum /= 62
	}
	return prefix + "_" + random + string(check[:])
}

// Guesses that are right up to the last character and guesses that are wrong everywhere are
// refused alike: the index is searched by an HMAC. The times are reported as Welch's t, and
// are not a limit.
func TestTheTimeOfARefusalDoesNotDependOnTheGuess(t *testing.T) {
	n := 2000
	if os.Getenv("RUNNER_SOAK") != "" {
		n = 50_000
	}
	w := inMemory(t)
	token := w.must(w.create(operator(compile(t, typed)), keystore.CreateRequest{Scope: "orders_read"})).Token.Reveal()
	var guesses [2][]string // near and wrong everywhere
	for _, last := range []byte("0aZ5kQ") {
		if near := guess(token, last); near != token {
			guesses[0] = append(guesses[0], near)
			guesses[1] = append(guesses[1], keystore.NewToken("ord").Reveal())
		}
	}
	var sum, squares [2]float64
	for i := range n {
		for k, all := range guesses {
			presented := []byte(all[i%len(all)])
			began := time.Now()
			got, err := w.keys.Verify(presented)
			took := float64(time.Since(began))
			if err != keystore.ErrInvalidToken || got.Refused != keystore.Unknown || got.ID != "" {
				t.Fatalf("%q: %+v, %v", presented, got, err)
			}
			sum[k] += took
			squares[k] += took * took
		}
	}
	var mean, variance [2]float64
	for k := range guesses {
		mean[k] = sum[k] / float64(n)
		variance[k] = (squares[k]/float64(n) - mean[k]*mean[k]) / float64(n)
	}
	t.Logf("near guesses take %.0f ns, others %.0f ns: t = %.2f of 2 × %d", mean[0], mean[1], (mean[0]-mean[1])/math.Sqrt(variance[0]+variance[1]), n)
}

func FuzzValidToken(f *testing.F) {
	form := regexp.MustCompile(`^[a-z][a-z0-9]{1,7}_([0-9A-Za-z]{30})([0-9A-Za-z]{6})$`)
	const digits = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ" // those of math/big
	swapCase := func(s string) string {
		return strings.Map(func(r rune) rune {
			switch {
			case 'a' <= r && r <= 'z':
				return r - 'a' + 'A'
			case 'A' <= r && r <= 'Z':
				return r - 'A' + 'a'
			}
			return r
		}, s)
	}
	f.Add([]byte(keystore.NewToken("ord").Reveal()))
	f.Add([]byte("rnk_000000000000000000000000000000000000"))
	f.Add([]byte("ord_" + digits))
	f.Fuzz(func(t *testing.T, b []byte) {
		want := false
		if m := form.FindSubmatch(b); m != nil && !strings.HasSuffix(string(b), "\n") {
			sum, ok := new(big.Int).SetString(swapCase(string(m[2])), 62)
			want = ok && sum.Cmp(big.NewInt(int64(crc32.ChecksumIEEE(m[1])))) == 0
		}
		if got := keystore.ValidToken(b); got != want {
			t.Errorf("%q: %v, want %v", b, got, want)
		}
	})
}
