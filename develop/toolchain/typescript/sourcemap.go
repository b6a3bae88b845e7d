package typescript

import (
	"strings"

	"runner.example/internal/diag"
	"runner.example/internal/sourcemap"
)

// find returns the place in a source for a place in the script; both count from 1.
func (b *bundle) find(line, col int) (span diag.Span, ok bool) {
	var found sourcemap.Segment
	for s := range b.sourceMap.Segments() {
		if s.GeneratedLine+1 > line {
			break
		}
		if s.GeneratedLine+1 == line && s.GeneratedColumn < col && s.Source != sourcemap.Unknown {
			found, ok = s, true
		}
	}
	if !ok {
		return span, false
	}
	return diag.At(b.sourceMap.Sources[found.Source], found.Line+1, found.Column+1, 1), true
}

// standing returns the mappings in a form in which each line can be read without the
// previous ones: the first segment of a line counts from 0. Places outside the app's files
// have only a column, which in a source map means an unknown source; lines with only such
// places are empty.
func (b *bundle) standing() string {
	var out []byte
	line, begin, known := 0, 0, false
	var written [4]int
	endLine := func() {
		if !known {
			out = out[:begin]
		}
	}
	for s := range b.sourceMap.Segments() {
		for ; line < s.GeneratedLine; line++ {
			endLine()
			out = append(out, ';')
			begin, known, written = len(out), false, [4]int{}
		}
		if len(out) > begin {
			out = append(out, ',')
		}
		numbers := []int{s.GeneratedColumn}
		if s.Source != sourcemap.Unknown && !isOurs(b.sourceMap.Sources[s.Source]) {
			numbers = append(numbers, s.Source, s.Line, s.Column)
			known = true
		}
		for i, n := range numbers {
			out = sourcemap.AppendNumber(out, n-written[i])
			written[i] = n
		}
	}
	endLine()
	return string(out) + strings.Repeat(";", strings.Count(b.sourceMap.Mappings, ";")-line)
}

// isOurs reports whether a source belongs to the SDK or is the generated entry script.
func isOurs(source string) bool {
	return strings.HasPrefix(source, sdkDirectory+":") || strings.HasPrefix(source, sdkDirectory+"-") || source == entryFile
}
