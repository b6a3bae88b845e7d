// Command gen writes root.jsonl.gz, the root collation of CLDR as packed answers, and the part of it that the SDK for
// TypeScript contains. The data comes from Node.js, because the tests compare results with Node.js. ICU reads the data.
// Gen needs Node.js with its own ICU, a C compiler and ICU 72 (Debian 12: libicu-dev).
package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// element is a collation element.
type element struct{ primary, secondary, tertiary uint32 }

const (
	common    = 0x0500     // the secondary and tertiary weight of most elements
	firstHan  = 0xFA000000 // primary weights from here on follow the order of the code points: ideographs,
	firstRest = 0xFE000000 // code points without a weight of their own,
	last      = 0xFFFF0000 // and U+FFFF
	perBlock  = 128
	minRun    = 256 // code points whose ranks follow each other
)

// root is the collation, with dense ranks for weights.
type root struct {
	elements     map[rune][]element
	classes      map[rune]int
	contractions map[string][]element
	starts       map[rune][]string // the contractions by their first character

	primaries, secondaries, tertiaries []uint32
	han                                []uint32
}

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

func run() error {
	dir, err := os.MkdirTemp("", "collation")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	program := filepath.Join(dir, "dump")
	if out, err := exec.Command("cc", "-O1", "gen/icu/dump.c", "-o", program, "-licui18n", "-licuuc").CombinedOutput(); err != nil {
		return fmt.Errorf("compile gen/icu/dump.c: %w\n%s", err, out)
	}
	if err := writeNodeData(filepath.Join(dir, "icudt72l", "coll")); err != nil {
		return err
	}
	dump := exec.Command(program)
	dump.Env = append(os.Environ(), "ICU_DATA="+dir) // it comes before the data of the library
	text, err := dump.Output()
	if err != nil {
		return fmt.Errorf("read ICU's collation: %w", err)
	}
	r, err := parse(text)
	if err != nil {
		return err
	}
	r.rank()
	lines := r.lines()
	var packed bytes.Buffer
	z, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := z.Write([]byte(strings.Join(lines, ""))); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	if err := os.WriteFile("root.jsonl.gz", packed.Bytes(), 0o644); err != nil {
		return err
	}
	return os.WriteFile("../../sdk/typescript/src/collationlatin.ts", r.latin(lines), 0o644)
}

// writeNodeData writes the collation of Node.js to a directory. It is a file in the package of ICU's data, which is a part
// of the executable: a header, then the offsets of names and contents.
func writeNodeData(dir string) error {
	path, err := exec.Command("node", "-p", "process.execPath").Output()
	if err != nil {
		return fmt.Errorf("find Node.js: %w", err)
	}
	program, err := os.ReadFile(strings.TrimSpace(string(path)))
	if err != nil {
		return err
	}
	header := bytes.Index(program, []byte("\xda\x27\x14\x00\x00\x00\x00\x00\x02\x00CmnD")) - 2
	if header < 0 {
		return errors.New("this Node.js contains no data of ICU")
	}
	base := program[header+int(binary.LittleEndian.Uint16(program[header:])):]
	entry := func(i uint32) (name string, content uint32) {
		at := base[4+8*i:]
		rest := base[binary.LittleEndian.Uint32(at):]
		return string(rest[:bytes.IndexByte(rest, 0)]), binary.LittleEndian.Uint32(at[4:])
	}
	for i := range binary.LittleEndian.Uint32(base) {
		if name, from := entry(i); strings.HasSuffix(name, "/coll/ucadata.icu") {
			_, to := entry(i + 1)
			if err := os.MkdirAll(dir, 0o700); err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(dir, "ucadata.icu"), base[from:to], 0o600)
		}
	}
	return errors.New("the data of this Node.js has no collation")
}

func parse(text []byte) (*root, error) {
	r := &root{elements: map[rune][]element{}, classes: map[rune]int{}, contractions: map[string][]element{}, starts: map[rune][]string{}}
	scanner := bufio.NewScanner(bytes.NewReader(text))
	contractions := false
	for scanner.Scan() {
		of, weights, ok := strings.Cut(scanner.Text(), ";")
		if !ok {
			contractions = true
			continue
		}
		elements, err := elementsOf(weights)
		if err != nil {
			return nil, err
		}
		fields := strings.Fields(of)
		if contractions {
			var text strings.Builder
			for _, field := range fields {
				c, err := strconv.ParseUint(field, 16, 32)
				if err != nil {
					return nil, err
				}
				text.WriteRune(rune(c))
			}
			if fields[0] != "FDD1" { // what indexes of scripts use
				first, _ := utf8.DecodeRuneInString(text.String())
				r.contractions[text.String()] = elements
				r.starts[first] = append(r.starts[first], text.String())
			}
			continue
		}
		c, err := strconv.ParseUint(fields[0], 16, 32)
		if err != nil {
			return nil, err
		}
		r.elements[rune(c)] = elements
		if fields[1] != "0" {
			if r.classes[rune(c)], err = strconv.Atoi(fields[1]); err != nil {
				return nil, err
			}
		}
	}
	return r, scanner.Err()
}

// elementsOf reads what ICU's iterator gives. A long element has two parts, the second with 0xC0.
func elementsOf(weights string) (all []element, err error) {
	for field := range strings.FieldsSeq(weights) {
		n, err := strconv.ParseUint(field, 16, 32)
		if err != nil {
			return nil, err
		}
		w := uint32(n)
		if w&0xC0 == 0xC0 && len(all) > 0 {
			e := &all[len(all)-1]
			e.primary, e.secondary, e.tertiary = e.primary|w>>16, e.secondary|w>>8&0xFF, e.tertiary|w&0x3F
			continue
		}
		all = append(all, element{w & 0xFFFF0000, w & 0xFF00, w & 0xFF << 8})
	}
	return all, nil
}

// rank collects the weights.
func (r *root) rank() {
	primaries, secondaries, tertiaries, han := map[uint32]bool{}, map[uint32]bool{}, map[uint32]bool{}, map[uint32]bool{}
	add := func(all []element) {
		for _, e := range all {
			switch {
			case e.primary >= firstHan && e.primary < firstRest:
				han[e.primary] = true
			case e.primary < firstHan:
				primaries[e.primary] = true
			}
			secondaries[e.secondary], tertiaries[e.tertiary&0x3FFF] = true, true
		}
	}
	for _, all := range r.elements {
		add(all)
	}
	for _, all := range r.contractions {
		add(all)
	}
	sorted := func(of map[uint32]bool) []uint32 {
		delete(of, 0)
		return slices.Sorted(maps.Keys(of))
	}
	r.primaries, r.secondaries, r.tertiaries, r.han = sorted(primaries), sorted(secondaries), sorted(tertiaries), sorted(han)
}

// rankOf is the place of a weight among others, from 1; 0 for the weight 0.
func rankOf(weight uint32, of []uint32) int {
	if weight == 0 {
		return 0
	}
	i, ok := slices.BinarySearch(of, weight)
	if !ok {
		panic(fmt.Sprintf("BUG: the weight %X is unknown", weight))
	}
	return i + 1
}

// primaryOf is the rank of a primary weight of the code point c.
func (r *root) primaryOf(primary uint32, c rune) int {
	switch {
	case primary == last:
		return 1 + len(r.primaries) + len(r.han) + 0x110000
	case primary >= firstRest:
		return 1 + len(r.primaries) + len(r.han) + int(c)
	case primary >= firstHan:
		return len(r.primaries) + rankOf(primary, r.han)
	}
	return rankOf(primary, r.primaries)
}

// weights returns the ranks of elements, three numbers for each. A single element with common secondary and tertiary
// weights is one number. A code point without weights is 0.
func (r *root) weights(all []element, c rune) any {
	if ignorable := !slices.ContainsFunc(all, func(e element) bool { return e != element{} }); ignorable {
		return 0
	}
	out := []int{}
	for _, e := range all {
		out = append(out, r.primaryOf(e.primary, c), rankOf(e.secondary, r.secondaries),
			int(e.tertiary>>14)<<6|rankOf(e.tertiary&0x3FFF, r.tertiaries))
	}
	if plain, ok := r.plain(all, c); ok {
		return plain
	}
	return out
}

func (r *root) plain(all []element, c rune) (primary int, ok bool) {
	if len(all) != 1 || all[0].primary == 0 || all[0].secondary != common || all[0].tertiary != common {
		return 0, false
	}
	return r.primaryOf(all[0].primary, c), true
}

// answer is the host's answer about a range of code points.
type answer struct {
	From rune `json:"from"`
	To   rune `json:"to"`
	// Rank is the primary rank of the first code point; each next one has the next rank.
	Rank         int            `json:"rank,omitempty"`
	Elements     []any          `json:"elements,omitempty"`
	Contractions map[string]any `json:"contractions,omitempty"`
	Classes      map[string]int `json:"classes,omitempty"`
}

// lines are the answers, sorted and without gaps.
func (r *root) lines() (lines []string) {
	const end = 0x110000
	elementsAt := func(c rune) []element {
		if !norm.NFD.IsNormalString(string(c)) {
			return nil // NFD decomposes it before
		}
		if all, ok := r.elements[c]; ok {
			return all
		}
		return []element{{firstRest, common, common}} // a surrogate
	}
	write := func(a answer) {
		line, err := json.Marshal(a)
		if err != nil {
			panic("BUG: " + err.Error())
		}
		lines = append(lines, string(line)+"\n")
	}
	runEnd := func(from rune) rune {
		rank, ok := r.plain(elementsAt(from), from)
		c := from
		for ; ok && c < end; c++ {
			next, plain := r.plain(elementsAt(c), c)
			if !plain || next != rank+int(c-from) || r.classes[c] != 0 || r.starts[c] != nil {
				break
			}
		}
		return c
	}
	a := answer{}
	begin := func(c rune) { a = answer{From: c, Contractions: map[string]any{}, Classes: map[string]int{}} }
	finish := func(c rune) {
		if a.To = c - 1; a.To >= a.From {
			write(a)
		}
		begin(c)
	}
	begin(0)
	for c := rune(0); c < end; {
		to := runEnd(c)
		if to-c >= minRun {
			finish(c)
			rank, _ := r.plain(elementsAt(c), c)
			write(answer{From: c, To: to - 1, Rank: rank})
			begin(to)
			c = to
			continue
		}
		for to = max(to, c+1); c < to; c++ {
			if c%perBlock == 0 {
				finish(c)
			}
			a.Elements = append(a.Elements, r.weights(elementsAt(c), c))
			if class := r.classes[c]; class != 0 {
				a.Classes[strconv.Itoa(int(c))] = class
			}
			for _, text := range r.starts[c] {
				a.Contractions[text] = r.weights(r.contractions[text], c)
			}
		}
	}
	finish(end)
	return lines
}

// latin is the source with the answers about Latin texts, which need no call of the host.
func (r *root) latin(lines []string) []byte {
	var out bytes.Buffer
	fmt.Fprintln(&out, "// Code generated by internal/collation/gen; DO NOT EDIT.")
	fmt.Fprintln(&out, "// The root collation of CLDR for Latin letters and their marks, as the operation collation gives it.")
	fmt.Fprintln(&out, "\n/** The ranks that the comparison knows: of the digit 0, and of the last punctuation mark. */")
	zero, _ := r.plain(r.elements['0'], '0')
	symbol, _ := r.plain(r.elements['`'], '`') // the first one
	fmt.Fprintf(&out, "export const zeroRank = %d;\nexport const punctuationRank = %d;\n", zero, symbol-1)
	fmt.Fprintln(&out, "\nexport const latin = [")
	for _, line := range lines {
		var a answer
		if json.Unmarshal([]byte(line), &a) == nil && (a.To <= 0x17F || a.From >= 0x300 && a.To <= 0x37F) {
			fmt.Fprintf(&out, "  %q,\n", strings.TrimSpace(line))
		}
	}
	fmt.Fprintln(&out, "];")
	return out.Bytes()
}
