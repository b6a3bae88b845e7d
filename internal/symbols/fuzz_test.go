package symbols_test

import (
	"encoding/binary"
	"os"
	"runtime"
	"testing"
	"time"

	"runner.example/internal/symbols"
	"runner.example/internal/wasm"
)

// seeds are modules and debug files, the first of each line from compilers.
func seeds(f *testing.F) {
	if whole, err := os.ReadFile("testdata/small.wasm"); err == nil {
		f.Add(whole, []byte(nil), uint32(1), int64(30))
		if module, debug, err := symbols.Split(whole); err == nil {
			f.Add(module, debug, uint32(1), int64(30))
		}
	}
	f.Add([]byte("\x00asm\x01\x00\x00\x00\x0a\x04\x01\x02\x00\x0b"), []byte(`{"version":3,"sources":["a"],"mappings":"UAAA"}`), uint32(0), int64(10))
	f.Add([]byte("\x00asm\x01\x00\x00\x00\x0a\x04\x01\x02\x00\x0b\x00\x09\x04name\x01\x02\x01\x00"), []byte{}, uint32(0), int64(-1))
}

// Whatever the files are, there is a frame, and each frame has limits.
func FuzzRead(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, module, debug []byte, function uint32, offset int64) {
		table, _ := symbols.Read(module, debug)
		checkFrames(t, table, function, offset)
		_, _, _ = symbols.Split(module)
	})
}

// FuzzFrames changes DWARF in place, so that its sections stay readable.
func FuzzFrames(f *testing.F) {
	whole, err := os.ReadFile("testdata/small.wasm")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(uint32(0x60), uint32(0x7fffffff), uint32(0x70), byte(0xff))
	f.Fuzz(func(t *testing.T, at, number, other uint32, b byte) {
		module := append([]byte(nil), whole...)
		start := uint32(len(module) / 2) // the code is before it
		binary.LittleEndian.PutUint32(module[start+at%(start-4):], number)
		module[start+other%start] = b
		table, _ := symbols.Read(module, nil)
		for offset := int64(0); offset < int64(start); offset += 3 {
			checkFrames(t, table, 0, offset)
		}
	})
}

func checkFrames(t *testing.T, table *symbols.Table, function uint32, offset int64) {
	frames := table.Frames(function, offset)
	if len(frames) == 0 || len(frames) > 65 {
		t.Fatalf("%d frames", len(frames))
	}
	for _, f := range frames {
		if len(f.Function) > 1100 || len(f.File) > 1100 || f.Line < 0 || f.Column < 0 || f.Offset < 0 {
			t.Fatalf("the frame is %+v", f)
		}
	}
}

// hostile are files that announce much more than they have, or make a reader repeat its work.
func hostile() map[string][]byte {
	code := "\x00asm\x01\x00\x00\x00\x0a\x04\x01\x02\x00\x0b"
	u32 := func(n int) string { return string(binary.LittleEndian.AppendUint32(nil, uint32(n))) }
	repeat := func(text string, bytes int) string {
		out := make([]byte, 0, bytes+len(text))
		for len(out) < bytes {
			out = append(out, text...)
		}
		return string(out)
	}
	with := func(sections ...string) []byte {
		file := []byte(code)
		for i := 0; i < len(sections); i += 2 {
			file = wasm.AppendCustom(file, sections[i], []byte(sections[i+1]))
		}
		return file
	}
	const size = 8 << 20
	unit := func(version, body string) string {
		content := version + body
		return u32(len(content)) + content
	}
	v4 := func(body string) string { return unit("\x04\x00"+u32(0)+"\x04", body) }
	named := "\x01\x11\x01\x03\x0e\x00\x00" + "\x02\x2e\x00\x03\x0e\x00\x00" + "\x00"
	flags := "\x01\x11\x01" + repeat("\x3f\x19", 500) + "\x00\x00\x00"
	inlined := "\x01\x11\x01\x00\x00" + "\x02\x2e\x01\x11\x01\x12\x0b\x00\x00" + "\x03\x1d\x01\x31\x13\x55\x17\x00\x00" + "\x00"
	lines := func(program string) string {
		head := "\x01\x01\xfb\x0e\x0d" + "\x00\x01\x01\x01\x01\x00\x00\x00\x01\x00\x00\x01" + "\x00" + "f\x00\x00\x00\x00" + "\x00"
		return unit("\x02\x00"+u32(len(head))+head, program)
	}
	sized := func(text string) string { return string(binary.AppendUvarint(nil, uint64(len(text)))) + text }
	stmt := "\x01\x11\x00\x10\x17\x00\x00\x00"
	return map[string][]byte{
		"long names":               with(".debug_abbrev", named, ".debug_str", repeat("x", size), ".debug_info", v4("\x01"+u32(0)+repeat("\x02"+u32(1), size))),
		"units":                    with(".debug_abbrev", repeat("\x01\x11\x01\x03\x08", size), ".debug_info", repeat(unit("\x04\x00\x01\x00\x00\x00\x04", "\x01"), size)),
		"units of one table each":  with(".debug_abbrev", repeat("\x01\x11\x01\x03\x08\x00\x00", size), ".debug_info", offsets(size)),
		"attributes without bytes": with(".debug_abbrev", flags, ".debug_info", v4(repeat("\x01", size))),
		"depth":                    with(".debug_abbrev", inlined, ".debug_info", v4("\x01"+repeat("\x02"+u32(1)+"\x02", size))),
		"ranges":                   with(".debug_abbrev", inlined, ".debug_ranges", repeat(u32(1)+u32(3), size), ".debug_info", v4("\x01"+repeat("\x03"+u32(12)+u32(0), 1<<20))),
		"lines":                    with(".debug_abbrev", stmt, ".debug_info", v4("\x01"+u32(0)), ".debug_line", lines("\x00\x05\x02"+u32(1)+repeat("\x0e\x01", size)+"\x00\x01\x01")),
		"files without bytes":      with(".debug_abbrev", stmt, ".debug_info", v4("\x01"+u32(0)), ".debug_line", unit("\x05\x00\x04\x00"+u32(40)+"\x01\x01\x01\xfb\x0e\x01", "\x00\xff\xff\xff\xff\xff\xff\xff\xff\x7f\x00\xff\xff\xff\xff\xff\xff\xff\xff\x7f"+repeat("\x00", 64))),
		"indirect forms":           with(".debug_abbrev", "\x01\x11\x00\x03\x16\x00\x00\x00", ".debug_info", v4(repeat("\x01\x16\x16\x16", size))),
		"an entry that is itself":  with(".debug_abbrev", inlined, ".debug_info", v4("\x01\x02"+u32(1)+"\x03\x03"+u32(18)+u32(0)), ".debug_ranges", u32(1)+u32(3)+u32(0)+u32(0)),
		"function names":           with("name", "\x01\xff\xff\xff\x03\xff\xff\xff\x03"+repeat("\x01\x00", size)),
		"mappings":                 with("sourceMappingURL", sized("data:,{\"sources\":[\"\"],\"mappings\":\""+repeat("AAAA,", size)+"\"}")),
	}
}

// offsets are units whose tables of abbreviations begin one byte after another.
func offsets(size int) string {
	var out []byte
	for i := 0; len(out) < size; i++ {
		out = append(out, 8, 0, 0, 0, 4, 0)
		out = append(binary.LittleEndian.AppendUint32(out, uint32(i)), 4, 1)
	}
	return string(out)
}

// The size of what is read and what is written is limited, whatever a file announces.
func TestHostileFilesCostLittle(t *testing.T) {
	for name, module := range hostile() {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		began := time.Now()
		table, err := symbols.Read(module, nil)
		read := time.Since(began)
		for offset := range int64(16) {
			checkFrames(t, table, 0, offset)
		}
		runtime.ReadMemStats(&after)
		t.Logf("%s: %d bytes, read in %v, frames in %v, %d MiB, %v", name, len(module), read, time.Since(began)-read, (after.TotalAlloc-before.TotalAlloc)>>20, err)
		if name == "function names" && table.Size() < 2*int64(len(module)) || table.Size() > 512<<20 {
			t.Errorf("%s: the size of the table is %d", name, table.Size())
		}
		if got := after.TotalAlloc - before.TotalAlloc; got > 512<<20 {
			t.Errorf("%s: %d MiB were allocated", name, got>>20)
		}
	}
}
