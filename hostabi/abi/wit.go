package abi

import (
	"fmt"
	"strings"
	"unicode"
)

// WITPackage is the package that components import the host's functions from. The first number of its version is
// Version, so that components match it as modules do. The second one counts additions.
const (
	WITPackage = "runner:app"
	WITVersion = "1.1.0"
)

// witInterfaces are the interfaces of operations that have none for their family, as apiKeys.create does.
var witInterfaces = map[string]string{
	"query": "rows", "get": "rows", "count": "rows", "aggregate": "rows", "insert": "rows", "update": "rows", "delete": "rows",
	"secret": "config", "var": "config",
	"digest": "crypto", "hmac": "crypto", "timingSafeEqual": "crypto",
	"fetch": "outbound", "fetch.read": "outbound", "fetch.close": "outbound", "domainToASCII": "outbound",
	"sleep": "time", "timeZone": "time",
	"problem":      "answers",
	"collation":    "text",
	"request.form": "file",
}

// WIT returns the interface of WITPackage that has the operation, and the name of the function. It is an error if
// witInterfaces does not have the operation.
func (o Op) WIT() (in, name string, err error) {
	if in = witInterfaces[o.Name]; in != "" {
		return in, kebab(o.Name), nil
	}
	if family, name, ok := strings.Cut(o.Name, "."); ok {
		return kebab(family), kebab(name), nil
	}
	return "", "", fmt.Errorf("operation %s has no interface of WIT: add it to witInterfaces", o.Name)
}

// Answers reports whether the caller may see the error of an operation: one of rows and keys is, one of a secret or
// of another service is not.
func (o Op) Answers() bool {
	switch in, _, _ := o.WIT(); in {
	case "rows", "api-keys", "sessions", "jobs", "webhooks":
		return true
	}
	return false
}

// kebab is a name in camelCase, perhaps of a family, as WIT has it. Letters that follow each other in upper case are one word.
func kebab(name string) string {
	var b strings.Builder
	lower := false
	for _, r := range strings.NewReplacer("_", "-", ".", "-").Replace(name) {
		if unicode.IsUpper(r) && lower {
			b.WriteByte('-')
		}
		lower = unicode.IsLower(r)
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// Kebab is the name of an errno as a case of WIT.
func (e ErrnoInfo) Kebab() string { return kebab(e.Name) }
