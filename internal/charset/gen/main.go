// Command gen writes indexes.txt.gz, the indexes of the Encoding Standard (section 5). Most of each is what
// golang.org/x/text decodes. It adds the control characters, those for private use, and the changes of GB18030-2022.
package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"log"
	"os"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
)

var singleByte = []struct {
	name string
	of   *charmap.Charmap
}{
	{"ibm866", charmap.CodePage866},
	{"iso-8859-2", charmap.ISO8859_2},
	{"iso-8859-3", charmap.ISO8859_3},
	{"iso-8859-4", charmap.ISO8859_4},
	{"iso-8859-5", charmap.ISO8859_5},
	{"iso-8859-6", charmap.ISO8859_6},
	{"iso-8859-7", charmap.ISO8859_7},
	{"iso-8859-8", charmap.ISO8859_8},
	{"iso-8859-10", charmap.ISO8859_10},
	{"iso-8859-13", charmap.ISO8859_13},
	{"iso-8859-14", charmap.ISO8859_14},
	{"iso-8859-15", charmap.ISO8859_15},
	{"iso-8859-16", charmap.ISO8859_16},
	{"koi8-r", charmap.KOI8R},
	{"koi8-u", charmap.KOI8U},
	{"macintosh", charmap.Macintosh},
	{"windows-874", charmap.Windows874},
	{"windows-1250", charmap.Windows1250},
	{"windows-1251", charmap.Windows1251},
	{"windows-1253", charmap.Windows1253},
	{"windows-1254", charmap.Windows1254},
	{"windows-1255", charmap.Windows1255},
	{"windows-1256", charmap.Windows1256},
	{"windows-1257", charmap.Windows1257},
	{"windows-1258", charmap.Windows1258},
	{"x-mac-cyrillic", charmap.MacintoshCyrillic},
}

// changed are the code points by pointer that GB18030-2022 has in place of ones for private use.
var changed = map[int]rune{
	7182: 0xfe10, 7183: 0xfe12, 7184: 0xfe11, 7185: 0xfe13, 7186: 0xfe14, 7187: 0xfe15, 7188: 0xfe16, 7201: 0xfe17,
	7202: 0xfe18, 7208: 0xfe19,
	23775: 0x9fb4, 23783: 0x9fb5, 23788: 0x9fb6, 23789: 0x9fb7, 23795: 0x9fb8, 23812: 0x9fb9, 23829: 0x9fba, 23845: 0x9fbb,
}

// private are code points for private use, which golang.org/x/text leaves out: of a lead byte, from the first trail byte to
// the last.
var private = []struct {
	lead, first, last int
	r                 rune
}{
	{0xa2, 0xab, 0xb0, 0xe766}, {0xa2, 0xe4, 0xe4, 0xe76d}, {0xa2, 0xef, 0xf0, 0xe76e}, {0xa2, 0xfd, 0xfe, 0xe770},
	{0xa4, 0xf4, 0xfe, 0xe772}, {0xa5, 0xf7, 0xfe, 0xe77d}, {0xa6, 0xb9, 0xc0, 0xe785}, {0xa6, 0xf6, 0xfe, 0xe797},
	{0xa7, 0xc2, 0xd0, 0xe7a0}, {0xa7, 0xf2, 0xfe, 0xe7af}, {0xa8, 0x96, 0xa0, 0xe7bc}, {0xa8, 0xc1, 0xc4, 0xe7c9},
	{0xa8, 0xea, 0xfe, 0xe7cd}, {0xa9, 0x58, 0x58, 0xe7e2}, {0xa9, 0x5b, 0x5b, 0xe7e3}, {0xa9, 0x5d, 0x5f, 0xe7e4},
	{0xa9, 0x97, 0xa3, 0xe7f4}, {0xa9, 0xf0, 0xfe, 0xe801}, {0xd7, 0xfa, 0xfe, 0xe810}, {0xfe, 0x51, 0x53, 0xe816},
	{0xfe, 0x6c, 0x6c, 0xe831}, {0xfe, 0x76, 0x76, 0xe83b}, {0xfe, 0x91, 0x91, 0xe855},
}

// complete adds what golang.org/x/text lacks to the index gb18030.
func complete(index []rune) {
	fill := func(lead, first, last int, r rune) {
		for trail := first; trail <= last; trail++ {
			pointer := (lead-0x81)*190 + trail - 0x41
			switch {
			case trail < 0x7f:
				pointer++
			case trail == 0x7f:
				continue
			}
			if index[pointer] == utf8.RuneError {
				index[pointer] = r
			}
			r++
		}
	}
	for _, p := range private {
		fill(p.lead, p.first, p.last, p.r)
	}
	for i := range 6 { // the three zones for characters that users define
		fill(0xaa+i, 0xa1, 0xfe, rune(0xe000+94*i))
	}
	for i := range 7 {
		fill(0xf8+i, 0xa1, 0xfe, rune(0xe234+94*i))
		fill(0xa1+i, 0x40, 0xa0, rune(0xe4c6+96*i))
	}
	for pointer, r := range changed {
		index[pointer] = r
	}
	index[(0xa8-0x81)*190+0xbc-0x41] = 0x1e3f // of GB18030-2005
}

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

func run() error {
	var text bytes.Buffer
	write := func(name string, index []rune) { fmt.Fprintf(&text, "%s\t%s\n", name, string(index)) }
	for _, s := range singleByte {
		index := make([]rune, 128)
		for i := range index {
			index[i] = s.of.DecodeByte(byte(0x80 + i))
			if i < 0x20 && index[i] == utf8.RuneError { // which the standard fills with the control characters
				index[i] = rune(0x80 + i)
			}
		}
		write(s.name, index)
	}
	gb18030 := pairs(simplifiedchinese.GB18030, 126*190, func(p int) []byte {
		return []byte{byte(0x81 + p/190), trail(p%190, 0x40, 0x3f, 0x41)}
	})
	complete(gb18030)
	write("gb18030", gb18030)
	write("gb18030-ranges", ranges())
	write("big5", pairs(traditionalchinese.Big5, 126*157, func(p int) []byte {
		return []byte{byte(0x81 + p/157), trail(p%157, 0x40, 0x3f, 0x62)}
	}))
	write("euc-kr", pairs(korean.EUCKR, 126*190, func(p int) []byte { return []byte{byte(0x81 + p/190), byte(0x41 + p%190)} }))
	write("jis0208", pairs(japanese.ShiftJIS, 60*188, func(p int) []byte {
		lead := 0x81 + p/188
		if lead > 0x9f {
			lead += 0xc1 - 0x81
		}
		return []byte{byte(lead), trail(p%188, 0x40, 0x3f, 0x41)}
	}))
	write("jis0212", pairs(japanese.EUCJP, 94*94, func(p int) []byte {
		return []byte{0x8f, byte(0xa1 + p/94), byte(0xa1 + p%94)}
	}))
	var packed bytes.Buffer
	z, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := z.Write(text.Bytes()); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	return os.WriteFile("indexes.txt.gz", packed.Bytes(), 0o644)
}

// trail returns a second byte; from the offset change on, another base is added.
func trail(offset, base, change, second int) byte {
	if offset >= change {
		base = second
	}
	return byte(offset + base)
}

// pairs returns the code points of an index, U+FFFD for a pointer without one.
func pairs(of encoding.Encoding, count int, bytes func(pointer int) []byte) []rune {
	index := make([]rune, count)
	for pointer := range index {
		index[pointer] = one(of, bytes(pointer))
	}
	return index
}

// one returns the character that bytes are, or U+FFFD.
func one(of encoding.Encoding, bytes []byte) rune {
	text, err := of.NewDecoder().Bytes(bytes)
	r, n := utf8.DecodeRune(text)
	if err != nil || n != len(text) {
		return utf8.RuneError
	}
	return r
}

// ranges returns the ranges of pointers of four bytes whose code points follow each other: the first pointer and its
// code point of each. The pointer 7457 belongs to the range around it.
func ranges() (all []rune) {
	const last = 39419 // of the first plane
	next := rune(-1)
	for pointer := rune(0); pointer <= last; pointer++ {
		bytes := []byte{byte(0x81 + pointer/12600), byte(0x30 + pointer/1260%10), byte(0x81 + pointer/10%126), byte(0x30 + pointer%10)}
		r := one(simplifiedchinese.GB18030, bytes)
		if pointer != 7457 && r != next {
			all = append(all, pointer, r)
			next = r
		}
		next++
	}
	return append(all, 189000, 0x10000)
}
