package typescript

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"runner.example/internal/diag"
)

// supportedIntl ends messages about Intl: it lists the supported parts.
const supportedIntl = "Intl has Collator, DateTimeFormat, NumberFormat, PluralRules, ListFormat, RelativeTimeFormat and getCanonicalLocales, for English (docs/typescript/globals.md)"

// absentIntl are the parts of Intl that the SDK's intl.ts does not have.
var absentIntl = []string{
	"DisplayNames", "DurationFormat", "Locale", "Segmenter", "supportedValuesOf",
}

// absentMark begins the names that esbuild writes for the absent parts of Intl, so that they
// differ from texts and from variables with the name Intl. No property has such a name
// either, so the code sees undefined.
const absentMark = "Intl.$absent"

// missingIntl are esbuild's definitions of the absent parts of Intl.
func missingIntl() map[string]string {
	define := map[string]string{}
	for _, name := range absentIntl {
		define["Intl."+name] = absentMark + name
		define["globalThis.Intl."+name] = absentMark + name
	}
	return define
}

var (
	// absentUse matches an absent part of Intl, and whether it is called.
	absentUse = regexp.MustCompile(regexp.QuoteMeta(absentMark) + `(\w+)((?:\.\w+)?\()?`)
	// absentTest matches a test whether a part of Intl exists.
	absentTest = regexp.MustCompile(`"(\w+)" in (?:globalThis\.)?Intl\b`)
	// localeUse matches a locale that is known at build time.
	localeUse = regexp.MustCompile(`(?:(?:\bIntl\.\w+|\.toLocale(?:Date|Time)?String)\(|\.localeCompare\((?:[\w.]+|"[^"\n]*"),)\s*"([A-Za-z]{2,3}(?:-[A-Za-z0-9]+)*)"`)
)

// checkIntl adds errors about absent parts of Intl that the script calls, and warnings about
// locales that do not exist. A file or package that tests whether the part exists may call
// it, because it has a fallback.
func (b *bundle) checkIntl(found *diag.List) {
	if !b.mentions(intlPart) && !b.mentions(collationPart) {
		return
	}
	lines := lineStarts(b.script)
	tested := map[[2]string]bool{} // by package or file, and name
	uses := absentUse.FindAllStringSubmatchIndex(b.script, -1)
	for _, use := range append(uses, absentTest.FindAllStringSubmatchIndex(b.script, -1)...) {
		if len(use) < 6 || use[4] < 0 {
			file := b.placeAt(lines, use[0]).File
			tested[[2]string{cmp.Or(packageOf(file), file), b.script[use[2]:use[3]]}] = true
		}
	}
	for _, use := range uses {
		span, name := b.placeAt(lines, use[0]), b.script[use[2]:use[3]]
		in := packageOf(span.File)
		if use[4] < 0 || tested[[2]string{cmp.Or(in, span.File), name}] {
			continue
		}
		if in != "" {
			found.Errorf("", span, "the package %s uses Intl.%s, which is not supported: %s; use another package", in, name, supportedIntl)
		} else {
			found.Errorf("", span, "Intl.%s is not supported: %s", name, supportedIntl)
		}
	}
	for _, use := range localeUse.FindAllStringSubmatchIndex(b.script, -1) {
		locale := b.script[use[2]:use[3]]
		language, _, _ := strings.Cut(strings.ToLower(locale), "-")
		if span := b.placeAt(lines, use[2]); language != "en" && packageOf(span.File) == "" {
			found.Warnf("", span, "the locale %s is not supported: the result is that of en-US", locale)
		}
	}
}

// placeAt returns the place in a source of an offset in the script.
func (b *bundle) placeAt(lines []int, offset int) diag.Span {
	line, exact := slices.BinarySearch(lines, offset)
	if !exact {
		line--
	}
	span, _ := b.find(line+1, utf8.RuneCountInString(b.script[lines[line]:offset])+1)
	return span
}

// lineStarts returns the offsets at which the lines of a text begin.
func lineStarts(text string) []int {
	starts := []int{0}
	for i := range len(text) {
		if text[i] == '\n' {
			starts = append(starts, i+1)
		}
	}
	return starts
}

// packageOf returns the npm package that a file belongs to, or "".
func packageOf(file string) string {
	_, after, ok := cutLast(file, "node_modules/")
	if !ok {
		return ""
	}
	parts := strings.SplitN(after, "/", 3)
	if strings.HasPrefix(after, "@") && len(parts) > 1 {
		return fmt.Sprintf("%s/%s", parts[0], parts[1])
	}
	return parts[0]
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}
