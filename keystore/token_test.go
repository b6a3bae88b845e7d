package keystore_test

import (
	"go/parser"
	"go/token"
	"hash/crc32"
	"math/big"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

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
