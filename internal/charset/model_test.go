package charset_test

import (
	"slices"
	"unicode/utf8"

	"runner.example/internal/charset"
)

// A model of the decoders: the steps of the Encoding Standard, one byte at a time from a queue, with the state in
// variables as the standard has them.
type model struct {
	queue       []int // bytes, and end
	text        []rune
	lead, b, c  int // and the second and third byte of gb18030
	jis0212     bool
	mode, out   string
	output, bad bool // bad: something was malformed
}

const end = -1

func (m *model) emit(r rune) { m.text = append(m.text, r) }
func (m *model) malformed()  { m.bad = true; m.emit(utf8.RuneError) }
func (m *model) prepend(bytes ...int) {
	m.queue = append(slices.Clone(bytes), m.queue...)
}

func in(b, low, high int) bool { return b >= low && b <= high }

// decodeModel decodes all of src.
func decodeModel(name string, src []byte) (text string, malformed bool) {
	m := &model{mode: "ASCII", out: "ASCII"}
	for _, b := range src {
		m.queue = append(m.queue, int(b))
	}
	m.queue = append(m.queue, end)
	for len(m.queue) > 0 {
		b := m.queue[0]
		m.queue = m.queue[1:]
		switch name {
		case "gbk", "gb18030":
			m.gb18030(b)
		case "big5":
			m.big5(b)
		case "euc-jp":
			m.eucJP(b)
		case "shift_jis":
			m.shiftJIS(b)
		case "euc-kr":
			m.eucKR(b)
		case "iso-2022-jp":
			m.iso2022JP(b)
		case "x-user-defined":
			if b >= 0x80 {
				m.emit(rune(0xf780 + b - 0x80))
			} else if b != end {
				m.emit(rune(b))
			}
		default:
			if name == "iso-8859-8-i" {
				name = "iso-8859-8"
			}
			switch {
			case in(b, 0, 0x7f):
				m.emit(rune(b))
			case b == end:
			case charset.Indexes()[name][b-0x80] == utf8.RuneError:
				m.malformed()
			default:
				m.emit(charset.Indexes()[name][b-0x80])
			}
		}
	}
	return string(m.text), m.bad
}

// point emits the code point of a pointer; -1 is null.
func (m *model) point(index string, pointer, b int) {
	if x := charset.Indexes()[index]; pointer >= 0 && pointer < len(x) && x[pointer] != utf8.RuneError {
		m.emit(x[pointer])
		return
	}
	if in(b, 0, 0x7f) {
		m.prepend(b)
	}
	m.malformed()
}

func (m *model) gb18030(b int) {
	first, second, third := m.lead, m.b, m.c
	switch {
	case b == end && first == 0 && second == 0 && third == 0:
	case b == end:
		m.lead, m.b, m.c = 0, 0, 0
		m.malformed()
	case third != 0:
		m.lead, m.b, m.c = 0, 0, 0
		if !in(b, 0x30, 0x39) {
			m.prepend(second, third, b)
			m.malformed()
			return
		}
		pointer := (first-0x81)*12600 + (second-0x30)*1260 + (third-0x81)*10 + b - 0x30
		switch {
		case pointer > 39419 && pointer < 189000, pointer > 1237575:
			m.malformed()
		case pointer == 7457:
			m.emit(0xe7c7)
		default:
			ranges, offset, base := charset.Indexes()["gb18030-ranges"], 0, rune(0)
			for i := 0; i < len(ranges) && int(ranges[i]) <= pointer; i += 2 {
				offset, base = int(ranges[i]), ranges[i+1]
			}
			m.emit(base + rune(pointer-offset))
		}
	case second != 0:
		if in(b, 0x81, 0xfe) {
			m.c = b
			return
		}
		m.prepend(second, b)
		m.lead, m.b = 0, 0
		m.malformed()
	case first != 0:
		if in(b, 0x30, 0x39) {
			m.b = b
			return
		}
		m.lead = 0
		pointer, offset := -1, 0x41
		if b < 0x7f {
			offset = 0x40
		}
		if in(b, 0x40, 0x7e) || in(b, 0x80, 0xfe) {
			pointer = (first-0x81)*190 + b - offset
		}
		m.point("gb18030", pointer, b)
	case b <= 0x7f:
		m.emit(rune(b))
	case b == 0x80:
		m.emit('€')
	case in(b, 0x81, 0xfe):
		m.lead = b
	default:
		m.malformed()
	}
}

// begin is what a decoder does without a lead byte; it reports whether that was all.
func (m *model) begin(b int, isLead bool) bool {
	switch {
	case b == end && m.lead != 0:
		m.lead, m.jis0212 = 0, false
		m.malformed()
	case b == end:
	case m.lead != 0:
		return false
	case b <= 0x7f:
		m.emit(rune(b))
	case isLead:
		m.lead = b
	default:
		m.malformed()
	}
	return true
}

func (m *model) big5(b int) {
	if m.begin(b, in(b, 0x81, 0xfe)) {
		return
	}
	lead, pointer, offset := m.lead, -1, 0x62
	m.lead = 0
	if b < 0x7f {
		offset = 0x40
	}
	if in(b, 0x40, 0x7e) || in(b, 0xa1, 0xfe) {
		pointer = (lead-0x81)*157 + b - offset
	}
	switch pointer {
	case 1133:
		m.text = append(m.text, 0xca, 0x304)
	case 1135:
		m.text = append(m.text, 0xca, 0x30c)
	case 1164:
		m.text = append(m.text, 0xea, 0x304)
	case 1166:
		m.text = append(m.text, 0xea, 0x30c)
	default:
		m.point("big5", pointer, b)
	}
}

func (m *model) eucKR(b int) {
	if m.begin(b, in(b, 0x81, 0xfe)) {
		return
	}
	lead, pointer := m.lead, -1
	m.lead = 0
	if in(b, 0x41, 0xfe) {
		pointer = (lead-0x81)*190 + b - 0x41
	}
	m.point("euc-kr", pointer, b)
}

func (m *model) eucJP(b int) {
	switch {
	case m.lead == 0x8e && in(b, 0xa1, 0xdf):
		m.lead = 0
		m.emit(rune(0xff61 - 0xa1 + b))
	case m.lead == 0x8f && in(b, 0xa1, 0xfe):
		m.jis0212, m.lead = true, b
	case m.begin(b, b == 0x8e || b == 0x8f || in(b, 0xa1, 0xfe)):
	default:
		lead, pointer, index := m.lead, -1, "jis0208"
		if m.jis0212 {
			index = "jis0212"
		}
		if in(lead, 0xa1, 0xfe) && in(b, 0xa1, 0xfe) {
			pointer = (lead-0xa1)*94 + b - 0xa1
		}
		m.lead, m.jis0212 = 0, false
		m.point(index, pointer, b)
	}
}

func (m *model) shiftJIS(b int) {
	if m.lead == 0 && b == 0x80 {
		m.emit(0x80)
		return
	}
	if m.lead == 0 && in(b, 0xa1, 0xdf) {
		m.emit(rune(0xff61 - 0xa1 + b))
		return
	}
	if m.begin(b, in(b, 0x81, 0x9f) || in(b, 0xe0, 0xfc)) {
		return
	}
	lead, pointer, offset, leadOffset := m.lead, -1, 0x41, 0xc1
	m.lead = 0
	if b < 0x7f {
		offset = 0x40
	}
	if lead < 0xa0 {
		leadOffset = 0x81
	}
	if in(b, 0x40, 0x7e) || in(b, 0x80, 0xfc) {
		pointer = (lead-leadOffset)*188 + b - offset
	}
	if in(pointer, 8836, 10715) {
		m.emit(rune(0xe000 - 8836 + pointer))
		return
	}
	m.point("jis0208", pointer, b)
}

func (m *model) iso2022JP(b int) {
	switch m.mode {
	case "ASCII", "Roman":
		switch {
		case b == 0x1b:
			m.mode = "escape start"
		case b == end:
		case m.mode == "Roman" && b == 0x5c:
			m.output = false
			m.emit(0xa5)
		case m.mode == "Roman" && b == 0x7e:
			m.output = false
			m.emit(0x203e)
		case b <= 0x7f && b != 0x0e && b != 0x0f:
			m.output = false
			m.emit(rune(b))
		default:
			m.output = false
			m.malformed()
		}
	case "katakana":
		switch {
		case b == 0x1b:
			m.mode = "escape start"
		case b == end:
		case in(b, 0x21, 0x5f):
			m.output = false
			m.emit(rune(0xff61 - 0x21 + b))
		default:
			m.output = false
			m.malformed()
		}
	case "lead":
		switch {
		case b == 0x1b:
			m.mode = "escape start"
		case b == end:
		case in(b, 0x21, 0x7e):
			m.output, m.lead, m.mode = false, b, "trail"
		default:
			m.output = false
			m.malformed()
		}
	case "trail":
		switch {
		case b == 0x1b:
			m.mode = "escape start"
			m.malformed()
		case in(b, 0x21, 0x7e):
			m.mode = "lead"
			if r := charset.Indexes()["jis0208"][(m.lead-0x21)*94+b-0x21]; r == utf8.RuneError {
				m.malformed()
			} else {
				m.emit(r)
			}
		case b == end:
			m.mode = "lead"
			m.prepend(b)
			m.malformed()
		default:
			m.mode = "lead"
			m.malformed()
		}
	case "escape start":
		if b == 0x24 || b == 0x28 {
			m.lead, m.mode = b, "escape"
			return
		}
		m.prepend(b)
		m.output, m.mode = false, m.out
		m.malformed()
	case "escape":
		modes := map[[2]int]string{{0x28, 0x42}: "ASCII", {0x28, 0x4a}: "Roman", {0x28, 0x49}: "katakana", {0x24, 0x40}: "lead", {0x24, 0x42}: "lead"}
		if mode := modes[[2]int{m.lead, b}]; mode != "" {
			m.mode, m.out = mode, mode
			output := m.output
			m.output = true
			if output {
				m.malformed()
			}
			return
		}
		m.prepend(m.lead, b)
		m.output, m.mode = false, m.out
		m.malformed()
	}
}
