package typescript

import (
	"path"
	"regexp"
	"strings"
)

// part is an optional script of the SDK. It is evaluated before the handlers only if their script contains one of its
// names, so other modules are not larger.
type part struct {
	file  string
	names *regexp.Regexp
}

var (
	collationPart = part{"collation.ts", regexp.MustCompile(`\b(?:localeCompare|Collator)\b`)}
	messagesPart  = part{"web/messages.ts", regexp.MustCompile(`\bMessage(?:Channel|Port|Event)\b`)}
	errorsPart    = part{"web/errors.ts", regexp.MustCompile(`\b(?:ErrorEvent|PromiseRejectionEvent|reportError|onerror|(?:on)?unhandledrejection|rejectionhandled)\b|\baddEventListener\(\s*["'\x60]error\b`)}
	timingPart    = part{"web/usertiming.ts", regexp.MustCompile(`\bPerformance[A-Z]\w+|\b(?:clearMarks|clearMeasures|getEntries|getEntriesByName|getEntriesByType)\b|\bperformance(?:\?\.|\.)(?:mark|measure)\b|\bperformance\[|[=:]\s*(?:globalThis\.)?performance\b(?:[^.?]|$)`)}
	intlPart      = part{"intl.ts", regexp.MustCompile(`\b(?:Intl|toLocale(?:Date|Time)?String)\b`)}
	subtlePart    = part{"web/subtle.ts", regexp.MustCompile(`\b(?:subtle|CryptoKey|SubtleCrypto)\b`)}

	compressionPart = part{"web/compression.ts", regexp.MustCompile(`\b(?:Dec|C)ompressionStream\b`)}
	urlPatternPart  = part{"web/urlpattern.ts", regexp.MustCompile(`\bURLPattern\b`)}
)

// parts are in the order of their evaluation. A part may use an earlier one, but must work without it.
var parts = []part{collationPart, intlPart, messagesPart, errorsPart, timingPart, subtlePart, compressionPart, urlPatternPart}

// evaluates matches a call of code that the build does not see, and that may use any part.
var evaluates = regexp.MustCompile(`\beval\b`)

// mentions reports whether the handlers' script may use the part.
func (b *bundle) mentions(p part) bool {
	return p.names.MatchString(b.script) || evaluates.MatchString(b.script)
}

// script is a script that is evaluated before the handlers.
type script struct{ name, text string }

// scripts returns, bundled, runtime.ts, which adds the usual JavaScript globals to the engine, and the parts that
// the handlers' script mentions.
func (b *bundle) scripts() ([]script, error) {
	files := []string{"runtime.ts"}
	for _, p := range parts {
		if b.mentions(p) {
			files = append(files, p.file)
		}
	}
	var all []script
	for _, file := range files {
		text, err := bundleSDK(file)
		if err != nil {
			return nil, err
		}
		all = append(all, script{name: strings.TrimSuffix(path.Base(file), ".ts") + ".js", text: text})
	}
	return all, nil
}
