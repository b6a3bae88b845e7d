package component_test

import (
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"runner.example/internal/component"
	"runner.example/internal/wasm"
)

const head = "0061736d0d000100"

// section is a component with one section, in hexadecimal digits.
func section(id, content string) string {
	return head + id + fmt.Sprintf("%02x", len(content)/2) + content
}

func TestFilesThatAreDamagedSayWhere(t *testing.T) {
	for _, c := range []struct{ name, hex, want string }{
		{"empty", "", "it is cut off, at byte 0x0"},
		{"the head is cut off", "0061736d0d00", "it is cut off"},
		{"an older version", "0061736d0c000100", "its first bytes are 0061736d0c000100, and those of a component of this version are 0061736d0d000100"},
		{"a module", "0061736d01000000", "its first bytes are"},
		{"a section without a size", head + "07", "section 7 is cut off, at byte 0x8"},
		{"a section that is longer than the file", head + "070300", "section 7 is cut off"},
		{"an unknown section", head + "0d00", "section 13 is not known"},
		{"bytes after a section", head + "070200ff", "1 bytes are left over in section 7, at byte 0xb"},
		{"more entries than bytes", section("07", "05"), "5 types are announced, which 0 bytes cannot hold, at byte 0xa"},
		{"a number of 33 bits", head + "0706ffffffff7f00", "a number is cut off or larger than 32 bits"},
		{"a number of 6 bytes", head + "0707818080808000" + "00", "a number is cut off or larger than 32 bits"},
		{"a custom section whose name is longer", head + "0002056f", "5 bytes of a name are announced"},
		{"a custom section whose name is not text", head + "000302fffe", "a name is not UTF-8 text, at byte 0xb"},
		{"a damaged module", section("01", "0061736d0100000001"), "the core module is cut off or damaged"},
		{"a module that is a component", head + "0108" + head, "the core module is a WebAssembly component"},
		{"a nested component of another version", section("04", "0061736d0c000100"), "its first bytes are 0061736d0c000100"},
		{"a core instance of another form", section("02", "0102"), "an instance of form 0x2, at byte 0xb"},
		{"an argument of another sort", section("02", "0100000101610000"), "an argument of a core instance is a core function, and not an instance"},
		{"an instance of another form", section("05", "0107"), "an instance of form 0x7"},
		{"an alias of another form", section("06", "01030300"), "an alias of form 0x3"},
		{"an alias of an unknown sort", section("06", "0109"), "0x9 is not a sort of item"},
		{"an alias of a tag", section("06", "010004"), "it uses exception tags, which are not supported"},
		{"an alias of an unknown core sort", section("06", "010005"), "0x5 is not a sort of core item"},
		{"a core function by a component's instance", section("06", "010000000000"), "an alias of a core function that an instance of the other kind exports"},
		{"a function by a core instance", section("06", "0101010000"), "an alias of a function that an instance of the other kind exports"},
		{"garbage collection", section("03", "015f00"), "it uses garbage collection, which is not supported"},
		{"a core type of another form", section("03", "017700"), "a core type of form 0x77"},
		{"a type of a module within one", section("03", "015001015000"), "a type of a core module is defined within another"},
		{"a declarator of a module", section("03", "0150010900"), "a declarator 0x9 in the type of a core module"},
		{"a tag in the type of a module", section("03", "015001030161040000"), "it uses exception tags"},
		{"a shared memory in the type of a module", section("03", "015001030161020301"), "shared, of 64 bits or with pages of their own size"},
		{"a memory that shrinks in the type of a module", section("03", "01500103016102010201"), "a core memory or table of at least 2 and at most 1"},
		{"an unknown kind in the type of a module", section("03", "0150010301610900"), "0x9 is not a kind of core item"},
		{"a global that may or may not change", section("03", "015001030161037f02"), "the mutability of a global is 0x2"},
		{"a core type that is not one", section("03", "0160016e00"), "0x6e is not a core value type of WebAssembly 2.0"},
		{"a type of another form", section("07", "0162"), "a type of form 0x62, at byte 0xb"},
		{"a part of an unknown type", section("07", "017062"), "0x62 is not a type without parts"},
		{"a part that is a long negative number", section("07", "0170ff7f"), "a type is a negative number of more than one byte"},
		{"a case that does not end", section("07", "01710101610001"), "a case of a variant ends with 0x1, and not with 0"},
		{"a presence that is neither", section("07", "016602"), "a type's presence is 0x2, and not 0 or 1"},
		{"results with names", section("07", "0140000101017a79"), "a function has results with names"},
		{"a resource of 64 bits", section("07", "013f7e00"), "it has a resource that is represented by i64: only i32 is supported"},
		{"a resource with an asynchronous destructor", section("07", "013e7f"), "a resource with an asynchronous destructor, which is not supported"},
		{"a declarator of an instance", section("07", "0142010900"), "a declarator 0x9 in the type of an instance"},
		{"an import in the type of an instance", section("07", "0142010300"), "a declarator 0x3 in the type of an instance"},
		{"a type with another bound", section("0a", "01000161030200"), "a type has a bound 0x2"},
		{"an imported core function", section("0a", "01000161000000"), "a core function is imported or exported by a component"},
		{"an exported core function", section("0b", "0100016100000000"), "a core function is exported by a component"},
		{"a name of another form", section("0a", "010301610100"), "a name of form 0x3"},
		{"a name with an unknown option", section("0a", "010201610107017801"), "a name has an option 0x7"},
		{"an unknown canonical definition", section("08", "017f"), "a canonical definition 0x7f"},
		{"a lift of another sort", section("08", "010001000000"), "lift is followed by 0x1, and not by 0"},
		{"a cancellable wait", section("08", "01200100"), "waitable-set.wait is followed by 0x1, and not by 0"},
		{"a context of 64 bits", section("08", "010a7e00"), "it uses context.get with i64: only i32 is supported"},
		{"an unknown option", section("08", "01010000010a"), "a canonical option 0xa"},
		{"an option of garbage collection", section("08", "010100000109"), "it uses garbage collection, which is not supported"},
	} {
		file, err := hex.DecodeString(c.hex)
		if err != nil {
			t.Fatal(c.name, err)
		}
		_, err = component.Read(file, wasm.DefaultLimits())
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v\nwant %s", c.name, err, c.want)
		}
	}
}

func TestAComponentIsKnownByItsFirstBytes(t *testing.T) {
	for file, want := range map[string]bool{
		"\x00asm\x0d\x00\x01\x00":     true,
		"\x00asm\x0a\x00\x01\x00more": true,
		"\x00asm\x01\x00\x00\x00":     false,
		"\x00asm\x0d\x00\x01":         false,
		"text":                        false,
	} {
		if component.IsComponent([]byte(file)) != want {
			t.Errorf("%q: %t", file, !want)
		}
	}
}
