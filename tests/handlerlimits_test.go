package tests

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// fixedLimits are rows of docs/schema/handler-limits.md, by their first cell, and the constants whose values
// the rows have.
var fixedLimits = map[string][]string{
	"native stack of nested calls":                            {"runtime/sandbox.maxStack", "runtime/sandbox.mostStack"},
	"runs, when other requests change what it has read":       {"state/store.maxTries"},
	"what it writes: bytes of keys and values":                {"state/store.maxTxBytes"},
	"outbound requests at the same time":                      {"hostabi.maxInFlight"},
	"operations that were started and not taken":              {"hostabi.maxPending", "hostabi.maxHeldBytes"},
	"pairs of the query":                                      {"runtime/front.maxQueryPairs"},
	"nesting of JSON":                                         {"schema.maxJSONDepth"},
	"errors in one `invalid_input`":                           {"schema.maxFieldErrors", "schema.maxErrorBytes"},
	"header lines of the answer":                              {"hostabi.maxHeaderLines", "hostabi.maxHeaderBytes"},
	"message of an error answer":                              {"hostabi.maxMessageBytes"},
	"`code` of an error answer":                               {"hostabi.maxCodeBytes"},
	"arguments":                                               {"hostabi.maxArgumentBytes", "hostabi.maxRowBytes"},
	"rows of a page":                                          {"state/entity/query.maxLimit", "state/entity/query.defaultLimit"},
	"result":                                                  {"state/entity.maxResultBytes"},
	"rows that a query without declared entities scans":       {"state/entity.maxFreeRows"},
	"rows of one `insert`":                                    {"state/entity/query.maxRows"},
	"rows that one `update` or `delete` finds and changes":    {"state/entity.maxChanged", "state/entity.maxKeptBytes"},
	"rows that one `delete` affects by `@onDelete`":           {"state/store.maxTxKeys", "state/store.maxTxBytes"},
	"`limit` of `update` and `delete`, `atMost` of `count`":   {"state/entity/query.maxLimit", "state/entity/query.maxAtMost"},
	"length of a stored row":                                  {"state/entity/layout.MaxRowBytes"},
	"indexed fields of a row, together in one index":          {"state/entity/layout.MaxEntryBytes"},
	"nesting of `or` and `not` in `where`":                    {"state/entity/query.maxNesting"},
	"comparisons in one `where`":                              {"state/entity/query.maxComparisons"},
	"values of one `in`":                                      {"state/entity/query.maxAmong"},
	"terms of `orderBy`":                                      {"state/entity/query.maxOrder"},
	"relations in `include`":                                  {"state/entity/query.maxIncludes", "state/entity/query.maxIncludeLevels"},
	"fields of `groupBy`":                                     {"state/entity/query.MaxGroupFields"},
	"values computed for each group":                          {"state/entity/query.maxComputed"},
	"groups":                                                  {"state/entity.maxGroups"},
	"without declared entities: fields of `select`, of a row": {"state/entity/query.maxSelected", "state/entity/query.maxUntypedMembers"},
	"what it writes: keys in the store":                       {"state/store.maxTxKeys"},
	"name of an operation":                                    {"hostabi.maxOpBytes"},
	"arguments, if they do not hold data":                     {"hostabi.maxArgumentBytes"},
	"arguments with data":                                     {"hostabi.maxDataBytes"},
	"nesting of arguments":                                    {"hostabi.maxDepth"},
	"`fetch`: time":                                           {"hostabi.fetchTime", "hostabi.maxTime"},
	"`fetch`: URL":                                            {"hostabi/outbound.maxURLBytes"},
	"`fetch`: headers of the request":                         {"hostabi/outbound.maxHeaders", "hostabi/outbound.maxHeaderBytes", "hostabi.maxHeaderText"},
	"`fetch`: redirects":                                      {"hostabi/outbound.maxRedirects"},
	"`fetch`: headers of the response":                        {"hostabi/outbound.maxAnswerHead"},
	"`sleep`":                                                 {"hostabi.maxTime"},
	"API keys: live tokens of one key":                        {"keystore.maxLiveTokens"},
	"API keys: name":                                          {"keystore.maxName"},
	"API keys: metadata":                                      {"keystore.maxMetadata"},
	"keys or sessions of one page":                            {"keystore.maxLimit", "keystore.defaultLimit"},
	"sessions: name of the user and of the tenant":            {"keystore.maxName"},
	"sessions: roles":                                         {"keystore.maxRoles"},
	"sessions that one call ends":                             {"keystore.maxRevoked"},
	"jobs: parameters":                                        {"state/jobs.maxParamBytes"},
	"jobs: `key`":                                             {"state/jobs.maxKeyBytes"},
	"passwords: time of a hash that is verified":              {"hostabi/password.maxSeconds"},
	"passwords: text of a hash":                               {"hostabi/password.maxTextBytes"},
	"`crypto`: RSA keys":                                      {"hostabi/webcrypto.minRSA", "hostabi/webcrypto.maxRSA", "hostabi/webcrypto.minMadeRSA"},
	"`crypto`: an imported key in DER":                        {"hostabi/webcrypto.maxKeyBytes"},
	"`crypto.deriveBits`: bits":                               {"hostabi/webcrypto.maxDerivedBits"},
	"`domainToASCII`":                                         {"internal/idn.MaxBytes"},
	"debug file":                                              {"internal/symbols.MaxDebugBytes"},
	"random state that `runner_random` lists":                 {"runtime/sandbox.maxRandomRegions", "runtime/sandbox.maxRandomBytes"},
	"modules and other files of a release":                    {"node/release.MaxFiles", "node/release.MaxTotalBytes"},
	"reports of failures in one run":                          {"hostabi.maxReports", "hostabi.maxReportText"},
	"frames of a failure":                                     {"internal/symbols.MaxFrames"},
	"header lines of a [program's](../programs.md) answer":    {"hostabi.maxHeaderBlock"},
}

// TestHandlerLimitsAreThoseOfTheCode compares the tables of docs/schema/handler-limits.md with the defaults in
// runner.toml and with the constants in the code.
func TestHandlerLimitsAreThoseOfTheCode(t *testing.T) {
	root := repoRoot(t)
	page, err := os.ReadFile(filepath.Join(root, "docs/schema/handler-limits.md"))
	if err != nil {
		t.Fatal(err)
	}
	defaults := defaultSettings(t, root)
	rows, settings := map[string]string{}, 0 // the limit of each row, by its first cell
	setting := regexp.MustCompile("^`\\[(\\w+)\\] (\\w+)`")
	for _, m := range regexp.MustCompile(`(?m)^\| (.+?) \| (.+?) \| (.*?) ?\| .+ \|$`).FindAllStringSubmatch(string(page), -1) {
		what, limit, by := m[1], m[2], setting.FindStringSubmatch(m[3])
		if _, twice := rows[what]; twice && what != "what" {
			t.Errorf("two rows are about %q", what)
		}
		rows[what] = limit
		if by == nil {
			continue
		}
		settings++
		if value := defaults[by[1]+"."+by[2]]; value != limit {
			t.Errorf("%s: the limit is %s, but the default of [%s] %s is %q", what, limit, by[1], by[2], value)
		}
	}
	if settings < 20 {
		t.Errorf("only %d rows name a setting", settings)
	}
	for what, names := range fixedLimits {
		limit, ok := rows[what]
		if !ok {
			t.Errorf("docs/schema/handler-limits.md has no row for %q", what)
		}
		for _, name := range names {
			if value := constantOf(t, root, name); ok && !regexp.MustCompile(`(^|[^\d,])`+value+`($|[^\d,]|,\D)`).MatchString(limit) {
				t.Errorf("%s: the limit is %s, but %s is %s", what, limit, name, value)
			}
		}
	}
}

// defaultSettings returns the values of runner.toml by section.key, without quotes.
func defaultSettings(t *testing.T, root string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "runner.toml"))
	if err != nil {
		t.Fatal(err)
	}
	values, section := map[string]string{}, ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(line, "["); ok {
			section = strings.TrimSuffix(name, "]")
		} else if key, value, ok := strings.Cut(line, " = "); ok && !strings.HasPrefix(line, "#") {
			values[section+"."+key] = strings.Trim(value, `"`)
		}
	}
	return values
}

// constantOf returns the value of a constant, dir.name, as the documentation writes it: whole MiB or KiB for
// a name that ends in Bytes, Text, Stack, Block, Head or Metadata; seconds; or a number with commas.
func constantOf(t *testing.T, root, name string) string {
	t.Helper()
	at := strings.LastIndex(name, ".")
	files, err := filepath.Glob(filepath.Join(root, name[:at], "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			consts, ok := decl.(*ast.GenDecl)
			if !ok || consts.Tok != token.CONST {
				continue
			}
			for _, spec := range consts.Specs {
				spec := spec.(*ast.ValueSpec)
				for i, id := range spec.Names {
					if id.Name == name[at+1:] {
						return documented(t, id.Name, types.ExprString(spec.Values[i]))
					}
				}
			}
		}
	}
	t.Fatalf("%s: there is no such constant; change fixedLimits", name)
	return ""
}

var sizeName = regexp.MustCompile(`(Bytes|Text|Stack|Block|Head|Metadata)$`)

func documented(t *testing.T, name, expr string) string {
	t.Helper()
	number, isTime := strings.CutSuffix(expr, " * time.Second")
	value, err := types.Eval(token.NewFileSet(), nil, token.NoPos, number)
	if err != nil {
		t.Fatalf("%s = %s: %v", name, expr, err)
	}
	n, exact := constant.Int64Val(constant.ToInt(value.Value))
	switch {
	case !exact:
		t.Fatalf("%s = %s is not a whole number", name, expr)
	case isTime:
		return fmt.Sprintf("%d s", n)
	case sizeName.MatchString(name) && n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	case sizeName.MatchString(name) && n%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
