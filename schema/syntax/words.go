package syntax

import "runner.example/internal/diag"

// Words that have a meaning at one place of the grammar, with the words for them that other
// languages have.

var declarations = diag.Vocabulary{
	Known: declWords,
	Others: map[string][]string{
		"model": {"entity"}, "table": {"entity"}, "resource": {"entity"}, "collection": {"entity"},
		"document": {"entity"}, "class": {"entity"}, "record": {"entity", "type"},
		"struct": {"type"}, "interface": {"type"}, "message": {"type"},
		"input": {"type"}, "object": {"type"}, "dto": {"type"},
		"union": {"enum"}, "fn": {"functions"}, "func": {"functions"},
		"rpc": {"functions"}, "service": {"functions", "routes"},
		"query": {"functions"}, "mutation": {"functions"}, "procedure": {"functions"},
		"api": {"routes"}, "endpoint": {"routes"}, "endpoints": {"routes"},
		"router": {"routes"}, "path": {"routes"}, "paths": {"routes"},
		"scope": {"apiKeys"}, "scopes": {"apiKeys"}, "keys": {"apiKeys"},
		"session": {"auth"}, "roles": {"auth"}, "login": {"auth"},
		"job": {"jobs"}, "queue": {"jobs"}, "worker": {"jobs"}, "cron": {"jobs"},
		"schedule": {"jobs"}, "task": {"jobs"}, "tasks": {"jobs"},
		"env": {"var", "secret"}, "variable": {"var"}, "config": {"var"}, "setting": {"var"}, "const": {"var"},
		"name": {"app"}, "project": {"app"}, "http": {"outbound", "routes"}, "fetch": {"outbound"}, "egress": {"outbound"},
		"static": {"assets"}, "public": {"assets"}, "directory": {"assets"}, "pages": {"assets"}, "site": {"assets"},
		"modules": {"module"}, "wasm": {"module"}, "binary": {"module"}, "build": {"module"}, "py": {"python"}, "interpreter": {"python"},
	},
	Remedies: map[string]string{
		"import":  "all *.schema files of the app directory are read as one, without imports",
		"include": "all *.schema files of the app directory are read as one, without imports",
		"get":     routeRemedy, "head": routeRemedy, "post": routeRemedy, "put": routeRemedy,
		"patch": routeRemedy, "delete": routeRemedy, "options": routeRemedy,
	},
}

const routeRemedy = `a route is written in a group: routes("/", auth: …) { … }`

var fieldAttrs = diag.Vocabulary{
	Known: append(append([]string(nil), plainAttrs...), argAttrs...),
	Mark:  "@",
	Others: map[string][]string{
		"private": {"hidden"}, "secret": {"hidden"}, "internal": {"hidden"}, "writeonly": {"hidden"},
		"immutable": {"readonly"}, "const": {"readonly"}, "regex": {"pattern"}, "regexp": {"pattern"}, "match": {"pattern"},
		"renamed": {"was"}, "renamedfrom": {"was"}, "formerly": {"was"},
		"deprecated": {"removed"}, "deleted": {"removed"}, "dropped": {"removed"},
		"indexed": {"index"}, "key": {"unique"}, "now": {"created", "updated"}, "timestamp": {"created", "updated"},
	},
	Remedies: map[string]string{
		"id": idRemedy, "pk": idRemedy, "primary": idRemedy, "primarykey": idRemedy,
		"default":  "a default follows the type: `name: type = value`",
		"required": requiredRemedy, "notnull": requiredRemedy,
		"notempty": "a text that is not empty is written string(1..100)",
		"optional": optionalRemedy, "nullable": optionalRemedy, "null": optionalRemedy,
		"relation": relationRemedy, "ref": relationRemedy, "references": relationRemedy,
		"foreignkey": relationRemedy, "belongsto": relationRemedy,
		"length": lengthRemedy, "len": lengthRemedy, "size": lengthRemedy,
		"minlength": lengthRemedy, "maxlength": lengthRemedy,
	},
}

const (
	wasRemedy      = `it follows the name of the entity: entity Name @was("OldName") { … }`
	removedRemedy  = "it follows the name of the entity: entity Name @removed { … }"
	idRemedy       = "the id of an entity is the field `id: id`"
	requiredRemedy = "a field is required unless its type ends with ?"
	optionalRemedy = "the type of an optional field ends with ?, as in string?"
	relationRemedy = "a relation is a field whose type is an entity"
	lengthRemedy   = "the length of a text is written string(1..100)"
)

var entityAttrs = diag.Vocabulary{
	Known: append(append([]string(nil), effects...), indexAttrs...),
	Mark:  "@@",
	Others: map[string][]string{
		"key": {"unique", "index"}, "policy": {"allow", "deny"}, "rule": {"allow", "deny"}, "permission": {"allow", "deny"},
		"grant": {"allow"}, "permit": {"allow"}, "forbid": {"deny"}, "refuse": {"deny"},
	},
	Remedies: map[string]string{"id": idRemedy, "was": wasRemedy, "removed": removedRemedy},
}

// Words are the words of the grammar by their place, in the order in which messages list them.
type Words struct {
	Declarations, Methods []string
	// FieldAttrs and EntityAttrs have no @. EntityAttrs are those with @@.
	FieldAttrs, EntityAttrs, ScopeAttrs, OnDelete, Callers []string
	// RouteSettings are also those of groups and functions, JobSettings those of jobs, AssetSettings those of assets.
	RouteSettings, JobSettings, AssetSettings, AuthModes []string
	// The names of settings in blocks.
	Auth, Cookie, JWT, APIKeys, Outbound, Module, Python []string
}

// AllWords returns all words of the grammar. The caller must not change them.
func AllWords() Words {
	return Words{
		Declarations: declWords, Methods: methods,
		FieldAttrs: fieldAttrs.Known, EntityAttrs: entityAttrs.Known, ScopeAttrs: scopeAttrs, OnDelete: onDeletes, Callers: kindWords,
		RouteSettings: settingWords, JobSettings: jobSettings, AssetSettings: assetSettings, AuthModes: authModes,
		Auth: authSettings, Cookie: cookieSettings, JWT: jwtSettings, APIKeys: keySettings, Outbound: outboundSettings,
		Module: moduleSettings, Python: pythonSettings,
	}
}
