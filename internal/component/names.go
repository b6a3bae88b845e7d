package component

import (
	"fmt"
	"regexp"
	"strings"
)

// The names of imports and exports, as the component model's Explainer.md has them.
const (
	labelForm   = `(?:[a-z][0-9a-z]*|[A-Z][0-9A-Z]*)(?:-(?:[0-9a-z]+|[0-9A-Z]+))*`
	wordsForm   = `[a-z][0-9a-z]*(?:-[0-9a-z]+)*`
	packageForm = wordsForm + `:` + wordsForm + `/` + labelForm
	numberForm  = `(?:0|[1-9][0-9]*)`
	preForm     = `(?:0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)`
	// semverForm is a version of semver.org, 2.0.0.
	semverForm = numberForm + `\.` + numberForm + `\.` + numberForm +
		`(?:-` + preForm + `(?:\.` + preForm + `)*)?` + `(?:\+[0-9a-zA-Z-]+(?:\.[0-9a-zA-Z-]+)*)?`
	// canonForm is the part of a version that says what it is compatible with; the rest is an option.
	canonForm = `(?:[1-9][0-9]*|0\.[1-9][0-9]*|0\.0\.` + numberForm + `)`
)

var (
	labelName     = regexp.MustCompile(`^` + labelForm + `$`)
	interfaceName = regexp.MustCompile(`^` + packageForm + `(?:@(` + semverForm + `))?$`)
	canonName     = regexp.MustCompile(`^` + packageForm + `@(` + canonForm + `)$`)
	semverOnly    = regexp.MustCompile(`^` + semverForm + `$`)
	annotatedName = regexp.MustCompile(`^\[(constructor|method|static)\](` + labelForm + `)(?:\.(` + labelForm + `))?$`)
	implementName = regexp.MustCompile(`^\[implements=<(` + packageForm + `(?:@` + semverForm + `)?)>\](` + labelForm + `)$`)
	otherName     = regexp.MustCompile(`^(?:locked-dep|unlocked-dep|url|integrity)=`)
)

func isLabel(name string) bool { return labelName.MatchString(name) }

// externName is the name of an import or export.
type externName struct {
	nameAt     int
	text       string
	suffix     *string // the rest of the version of an interface
	implements *string // the interface of an instance that has a label as its name
}

// annotation is what a name says besides labels.
type annotation struct {
	kind     string // constructor, method, static or implements
	resource string // that a constructor, method or static function belongs to
}

// from is the interface that an instance of the name is.
func (n externName) from() string {
	if n.implements != nil {
		return *n.implements
	}
	if m := implementName.FindStringSubmatch(n.text); m != nil {
		return m[1]
	}
	return n.text
}

// key is what must be unique among the imports or exports of one scope: see "strongly-unique" in
// Explainer.md.
func (n externName) key() string {
	label, annotated := n.text, strings.HasPrefix(n.text, "[")
	switch {
	case !annotated && strings.Contains(label, ":"):
		return label
	case annotated && !strings.HasPrefix(label, "[constructor]"):
		_, label, _ = strings.Cut(label, "]")
		if resource, member, _ := strings.Cut(label, "."); plain(resource) == plain(member) {
			label = resource
		}
	}
	return plain(label)
}

// plain is a label without what does not distinguish it from others.
func plain(label string) string { return strings.ToLower(strings.ReplaceAll(label, "-", "")) }

// check checks the form of a name. The error says what is wrong with it.
func (n externName) check() (a annotation, err error) {
	switch {
	case n.implements != nil && (!isLabel(n.text) || !interfaceName.MatchString(*n.implements)):
		return a, fmt.Errorf("%.100q is not a label, or %.100q that it implements is not an interface", n.text, *n.implements)
	case n.suffix != nil:
		m := canonName.FindStringSubmatch(n.text)
		if m == nil || !semverOnly.MatchString(m[1]+*n.suffix) {
			return a, fmt.Errorf("%.100q with %.100q is not a name with a semantic version", n.text, *n.suffix)
		}
		return a, nil
	case n.implements != nil || implementName.MatchString(n.text):
		a.kind = "implements"
		return a, nil
	case isLabel(n.text) || interfaceName.MatchString(n.text):
		return a, nil
	}
	if m := annotatedName.FindStringSubmatch(n.text); m != nil && (m[3] == "") == (m[1] == "constructor") {
		return annotation{m[1], m[2]}, nil
	}
	return a, fmt.Errorf("%.100q is not a name in kebab-case, or of an interface with a semantic version", n.text)
}
