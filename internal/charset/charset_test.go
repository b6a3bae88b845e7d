package charset_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"runner.example/internal/charset"
)

func lookup(t *testing.T, label string) *charset.Encoding {
	t.Helper()
	e, ok := charset.Lookup(label)
	if !ok {
		t.Fatalf("label %q is unknown", label)
	}
	return e
}

func TestLabelsAreThoseOfTheStandard(t *testing.T) {
	for label, name := range map[string]string{
		"SJIS": "shift_jis", "\t\n\f\r x-sjis ": "shift_jis", "ms932": "shift_jis", "latin5": "windows-1254",
		"logical": "iso-8859-8-i", "visual": "iso-8859-8", "koi8-ru": "koi8-u", "tis-620": "windows-874",
		"x-user-defined": "x-user-defined", "chinese": "gbk", "big5-hkscs": "big5", "ks_c_5601-1989": "euc-kr",
	} {
		if e, ok := charset.Lookup(label); !ok || e.Name() != name {
			t.Errorf("label %q is %v, want %s", label, e, name)
		}
	}
	for _, label := range []string{"", "replacement", "iso-2022-kr", "hz-gb-2312", "utf-8", "utf-7", "\u00a0sjis", "\vsjis", "\u212aoi8-r", "koi8\x00"} {
		if e, ok := charset.Lookup(label); ok {
			t.Errorf("label %q is %s", label, e.Name())
		}
	}
	if names := charset.Names(); len(names) != 35 {
		t.Errorf("there are %d encodings: %s", len(names), names)
	}
}

func TestCharactersAndMalformedInputAreDecoded(t *testing.T) {
	for _, c := range []struct{ label, in, want string }{
		{"iso-8859-7", "\xa4\xd3\xae", "€Σ\ufffd"},
		{"windows-1255", "\x81\xd9\xe0", "\u0081\ufffdא"},
		{"koi8-u", "\xae", "ў"},
		{"x-user-defined", "a\x80\xff", "a\uf780\uf7ff"},
		{"gbk", "\xc4\xe3\x80\xff", "你€\ufffd"},
		{"gb18030", "\xa8\xbc\x81\x35\xf4\x37\xa3\xa0\xaa\xa1\xa1\x40\xa6\xd9\xfe\x59\x90\x30\x81\x30", "\u1e3f\ue7c7\u3000\ue000\ue4c6\ufe10\u9fb4\U00010000"},
		{"gb18030", "\x81\x30\x81a\x81\x7f\x84\x31\xa5\x30\xe3\x32\x9a\x36", "\ufffd0乤\ufffd\x7f\ufffd\ufffd"},
		{"gb18030", "\x81\x30\x81", "\ufffd"},
		{"big5", "\xa7\x41\x88\x62\x88\xa5\x87\x40\x8e\x69\x80a\x81a", "你\u00ca\u0304\u00ea\u030c䏰箸\ufffda\ufffda"},
		{"euc-jp", "\xc6\xfc\x8e\xb1\x8f\xb0\xa1\x8f\xa1a\x8ea", "日ｱ丂\ufffda\ufffda"},
		{"shift_jis", "\x93\xfa\xb1\x80\xf0\x40\xfa\x40\xa0\x81\x3f\x82", "日ｱ\u0080\ue000ⅰ\ufffd\ufffd?\ufffd"},
		{"euc-kr", "\xb3\xaa\x81\x41\xffa\xc9\xa1", "나갂\ufffda\ufffd"},
		{"iso-2022-jp", "\x1b$B\x46\x7c\x1b(J\\~\x1b(I\x31\x1b(Ba", "日¥‾ｱa"},
		{"iso-2022-jp", "\x1b$B\x1b(B", "\ufffd"},
		{"iso-2022-jp", "\x1b$A\x1b$", "\ufffd$A\ufffd$"},
		{"iso-2022-jp", "\x1b$B\x46\x1b(B\x0e", "\ufffd\ufffd"},
	} {
		e := lookup(t, c.label)
		got, state, err := e.Decode([]byte(c.in), "", false, false)
		if string(got) != c.want || state != "" || err != nil {
			t.Errorf("%s: %q is %q %q %v, want %q", c.label, c.in, got, state, err, c.want)
		}
		_, _, err = e.Decode([]byte(c.in), "", false, true)
		if malformed := strings.Contains(c.want, "\ufffd"); malformed != (err == charset.ErrMalformed) {
			t.Errorf("%s: %q with fatal: %v", c.label, c.in, err)
		}
	}
}

func TestAStateThatIsNotOneIsRefused(t *testing.T) {
	for label, states := range map[string][]string{"shift_jis": {"8", "8g", "81818181", "a"}, "iso-2022-jp": {"8", "x", "!", "a8", "a81818181"}} {
		for _, state := range states {
			if _, _, err := lookup(t, label).Decode([]byte("a"), state, true, false); err != charset.ErrState {
				t.Errorf("%s: state %q: %v", label, state, err)
			}
		}
	}
}

// check compares the decoder with the model, as a whole and in two pieces.
func check(t *testing.T, name string, src []byte) {
	t.Helper()
	e := lookup(t, name)
	want, malformed := decodeModel(name, src)
	if got, _, err := e.Decode(src, "", false, false); string(got) != want || err != nil {
		t.Errorf("%s: %x is %q %v, want %q", name, src, got, err, want)
	}
	if _, _, err := e.Decode(src, "", false, true); malformed != (err == charset.ErrMalformed) {
		t.Errorf("%s: %x with fatal: %v", name, src, err)
	}
	for i := range src {
		first, state, err1 := e.Decode(src[:i], "", true, false)
		second, _, err2 := e.Decode(src[i:], state, false, false)
		if string(first)+string(second) != want || err1 != nil || err2 != nil {
			t.Errorf("%s: %x, %x are %q, %q %v %v, want %q", name, src[:i], src[i:], first, second, err1, err2, want)
		}
	}
}

func TestDecodersDoWhatTheStandardSays(t *testing.T) {
	for _, name := range charset.Names() {
		second := 256
		if len(charset.Indexes()[name]) == 128 {
			second = 1 // of one byte for each character
		}
		for a := range 256 {
			for b := range second {
				check(t, name, []byte{byte(a), byte(b)})
			}
		}
	}
	// Bytes that the decoders tell apart.
	bytes := []byte("a0\x1b$(BJI@\x0e\\~!\x7e\x7f\x80\x81\x84\x8e\x8f\xa0\xa1\xb0\xfe\xff\x30\x39")
	r := rand.New(rand.NewPCG(1, 2))
	for _, name := range charset.Names() {
		for range 2000 {
			src := make([]byte, r.IntN(12))
			for i := range src {
				src[i] = bytes[r.IntN(len(bytes))]
			}
			check(t, name, src)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(uint8(3), []byte("\x1b$B\x46\x7c\x1b(J"))
	names := charset.Names()
	f.Fuzz(func(t *testing.T, name uint8, src []byte) { check(t, names[int(name)%len(names)], src) })
}

func BenchmarkDecode(b *testing.B) {
	for _, label := range []string{"windows-1251", "shift_jis", "gb18030"} {
		e, _ := charset.Lookup(label)
		src := []byte(strings.Repeat("\x93\xfa\x96\x7b a", 10000))
		b.Run(label, func(b *testing.B) {
			b.SetBytes(int64(len(src)))
			for b.Loop() {
				_, _, _ = e.Decode(src, "", true, false)
			}
		})
	}
}
