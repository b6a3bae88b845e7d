package charset

import (
	"encoding/hex"
	"errors"
	"slices"
	"strings"
)

// Encoding is one of the legacy encodings. Its methods may be called from several goroutines.
type Encoding struct {
	name string
	// start returns a decoder in its first state.
	start func() decoder
}

// Name returns the name of the encoding, in lower case.
func (e *Encoding) Name() string { return e.name }

// decoder decodes one character after the other.
type decoder interface {
	// next appends the text of the first character of src, which is not empty, and returns how many bytes n it has.
	// If these n bytes are not a character, it returns malformed. If src ends within the character, n is 0.
	next(dst, src []byte) (out []byte, n int, malformed bool)
	// cut returns how many bytes one U+FFFD replaces if the input ends with src, which is only the beginning of a
	// character.
	cut(src []byte) int
}

// stateful is a decoder whose state is more than the bytes that are not decoded yet.
type stateful interface {
	decoder
	state() string
	setState(s string) bool
}

var (
	// ErrMalformed is the error of malformed input, with fatal.
	ErrMalformed = errors.New("the input is not in the encoding")
	// ErrState is the error of a state that Decode has not returned for this encoding.
	ErrState = errors.New("the state is not one of this decoder")
)

const (
	maxPending = 3 // bytes of a character that has begun
	stateChars = 1 // of the text of a stateful decoder
)

// Decode decodes a piece of input as UTF-8. The state is what Decode returned for the piece before, and empty for the
// first one. With more, the end of src is not the end of the input: an incomplete character at the end becomes a part of
// the new state. With fatal, malformed input is ErrMalformed; else each malformed sequence becomes U+FFFD. The error is
// ErrMalformed or ErrState. Decode does not keep src.
func (e *Encoding) Decode(src []byte, state string, more, fatal bool) (text []byte, newState string, err error) {
	d := e.start()
	s, hasState := d.(stateful)
	if hasState && state != "" {
		if len(state) < stateChars || !s.setState(state[:stateChars]) {
			return nil, "", ErrState
		}
		state = state[stateChars:]
	}
	pending, err := hex.DecodeString(state)
	if err != nil || len(pending) > maxPending {
		return nil, "", ErrState
	}
	if len(pending) > 0 {
		src = append(pending, src...)
	}
	text = make([]byte, 0, len(src)+len(src)/2)
	for len(src) > 0 {
		if !hasState {
			n := asciiLen(src)
			text, src = append(text, src[:n]...), src[n:]
			if len(src) == 0 {
				break
			}
		}
		var n int
		var malformed bool
		text, n, malformed = d.next(text, src)
		if n == 0 {
			if more {
				break
			}
			n, malformed = d.cut(src), true
		}
		if malformed {
			if fatal {
				return nil, "", ErrMalformed
			}
			text = append(text, "\ufffd"...)
		}
		src = src[n:]
	}
	if !more {
		return text, "", nil
	}
	if hasState {
		newState = s.state()
	}
	return text, newState + hex.EncodeToString(src), nil
}

// asciiLen returns how many bytes at the beginning are ASCII.
func asciiLen(src []byte) int {
	if n := slices.IndexFunc(src, func(b byte) bool { return b >= 0x80 }); n >= 0 {
		return n
	}
	return len(src)
}

// Lookup returns the encoding with a label (Encoding Standard, section 4.2), in any case and with blanks around it. It
// reports false for other labels, and for those of UTF-8, UTF-16 and windows-1252.
func Lookup(label string) (*Encoding, bool) {
	e, ok := byLabel[strings.ToLower(strings.Trim(label, "\t\n\f\r "))]
	if !ok || strings.ContainsRune(label, '\u212a') { // the Kelvin sign, which becomes a k
		return nil, false
	}
	return e, true
}

// byLabel are all encodings by their labels.
var byLabel = func() map[string]*Encoding {
	all := map[string]*Encoding{}
	for name, labels := range singleByteLabels {
		index := name
		if name == "iso-8859-8-i" {
			index = "iso-8859-8"
		}
		add(all, name, labels, func() decoder { return singleByte(indexes()[index]) })
	}
	for name, m := range multiByte {
		add(all, name, m.labels, m.start)
	}
	return all
}()

func add(all map[string]*Encoding, name, labels string, start func() decoder) {
	e := &Encoding{name, start}
	all[name] = e
	for label := range strings.FieldsSeq(labels) {
		all[label] = e
	}
}

// multiByte are the labels of the other encodings beside the name (Encoding Standard, section 4.2), and their decoders.
var multiByte = map[string]struct {
	labels string
	start  func() decoder
}{
	"gbk": {"chinese csgb2312 csiso58gb231280 gb2312 gb_2312 gb_2312-80 iso-ir-58 x-gbk",
		func() decoder { return newGB18030() }},
	"gb18030": {"", func() decoder { return newGB18030() }},
	"big5":    {"big5-hkscs cn-big5 csbig5 x-x-big5", func() decoder { return big5(indexes()["big5"]) }},
	"euc-jp":  {"cseucpkdfmtjapanese x-euc-jp", func() decoder { return newEUCJP() }},
	"iso-2022-jp": {"csiso2022jp",
		func() decoder { return &iso2022JP{jis0208: indexes()["jis0208"], mode: modeASCII} }},
	"shift_jis": {"csshiftjis ms932 ms_kanji shift-jis sjis windows-31j x-sjis",
		func() decoder { return shiftJIS(indexes()["jis0208"]) }},
	"euc-kr": {"cseuckr csksc56011987 iso-ir-149 korean ks_c_5601-1987 ks_c_5601-1989 ksc5601 ksc_5601 windows-949",
		func() decoder { return eucKR(indexes()["euc-kr"]) }},
	"x-user-defined": {"", func() decoder { return userDefined{} }},
}

// singleByteLabels are the labels of encodings with one byte for each character, beside the name.
var singleByteLabels = map[string]string{
	"ibm866":         "866 cp866 csibm866",
	"iso-8859-2":     "csisolatin2 iso-ir-101 iso8859-2 iso88592 iso_8859-2 iso_8859-2:1987 l2 latin2",
	"iso-8859-3":     "csisolatin3 iso-ir-109 iso8859-3 iso88593 iso_8859-3 iso_8859-3:1988 l3 latin3",
	"iso-8859-4":     "csisolatin4 iso-ir-110 iso8859-4 iso88594 iso_8859-4 iso_8859-4:1988 l4 latin4",
	"iso-8859-5":     "csisolatincyrillic cyrillic iso-ir-144 iso8859-5 iso88595 iso_8859-5 iso_8859-5:1988",
	"iso-8859-6":     "arabic asmo-708 csiso88596e csiso88596i csisolatinarabic ecma-114 iso-8859-6-e iso-8859-6-i iso-ir-127 iso8859-6 iso88596 iso_8859-6 iso_8859-6:1987",
	"iso-8859-7":     "csisolatingreek ecma-118 elot_928 greek greek8 iso-ir-126 iso8859-7 iso88597 iso_8859-7 iso_8859-7:1987 sun_eu_greek",
	"iso-8859-8":     "csiso88598e csisolatinhebrew hebrew iso-8859-8-e iso-ir-138 iso8859-8 iso88598 iso_8859-8 iso_8859-8:1988 visual",
	"iso-8859-8-i":   "csiso88598i logical",
	"iso-8859-10":    "csisolatin6 iso-ir-157 iso8859-10 iso885910 l6 latin6",
	"iso-8859-13":    "iso8859-13 iso885913",
	"iso-8859-14":    "iso8859-14 iso885914",
	"iso-8859-15":    "csisolatin9 iso8859-15 iso885915 iso_8859-15 l9",
	"iso-8859-16":    "",
	"koi8-r":         "cskoi8r koi koi8 koi8_r",
	"koi8-u":         "koi8-ru",
	"macintosh":      "csmacintosh mac x-mac-roman",
	"windows-874":    "dos-874 iso-8859-11 iso8859-11 iso885911 tis-620",
	"windows-1250":   "cp1250 x-cp1250",
	"windows-1251":   "cp1251 x-cp1251",
	"windows-1253":   "cp1253 x-cp1253",
	"windows-1254":   "cp1254 csisolatin5 iso-8859-9 iso-ir-148 iso8859-9 iso88599 iso_8859-9 iso_8859-9:1989 l5 latin5 x-cp1254",
	"windows-1255":   "cp1255 x-cp1255",
	"windows-1256":   "cp1256 x-cp1256",
	"windows-1257":   "cp1257 x-cp1257",
	"windows-1258":   "cp1258 x-cp1258",
	"x-mac-cyrillic": "x-mac-ukrainian",
}
