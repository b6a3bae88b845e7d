package compiler

import (
	"runner.example/internal/diag"
	"runner.example/schema"
)

// types are the built-in types, with the names that other languages have for them.
var types = diag.Vocabulary{
	Known: schema.BuiltinTypes,
	Also:  "a declared enum, type or entity",
	Others: map[string][]string{
		"datetime": {"time"}, "timestamp": {"time"}, "timestamptz": {"time"}, "instant": {"time"}, "day": {"date"},
		"interval": {"duration"}, "timespan": {"duration"}, "timedelta": {"duration"},
		"number": {"int", "float", "decimal"}, "numeric": {"decimal", "int", "float"},
		"money": {"decimal"}, "currency": {"decimal"}, "bigdecimal": {"decimal"},
		"integer": {"int"}, "int8": {"int"}, "int16": {"int"}, "int32": {"int"},
		"int64": {"int"}, "uint": {"int"}, "uint8": {"int"}, "uint16": {"int"},
		"uint32": {"int"}, "uint64": {"int"}, "bigint": {"int"}, "smallint": {"int"},
		"long": {"int"}, "i32": {"int"}, "i64": {"int"}, "u32": {"int"}, "u64": {"int"},
		"double": {"float"}, "real": {"float"}, "float32": {"float"},
		"float64": {"float"}, "f32": {"float"}, "f64": {"float"},
		"boolean": {"bool"}, "bit": {"bool"}, "flag": {"bool"},
		"varchar": {"string"}, "char": {"string"}, "str": {"string"}, "citext": {"string"},
		"longtext": {"text"}, "clob": {"text"}, "markdown": {"text"},
		"object": {"json"}, "jsonb": {"json"}, "map": {"json"}, "dict": {"json"},
		"record": {"json"}, "any": {"json"}, "unknown": {"json"}, "struct": {"json"},
		"blob": {"bytes"}, "binary": {"bytes"}, "bytea": {"bytes"}, "buffer": {"bytes"},
		"attachment": {"file"}, "upload": {"file"}, "image": {"file"}, "picture": {"file"}, "photo": {"file"},
		"uri": {"url"}, "link": {"url"}, "guid": {"uuid"}, "ulid": {"id"},
		"objectid": {"id"}, "serial": {"id"}, "bigserial": {"id"},
	},
	Remedies: map[string]string{
		"array": listRemedy, "list": listRemedy, "set": listRemedy,
		"enum": "declare it, `enum Name { a, b }`, and write its name",
	},
}

const listRemedy = "a list is written with its elements' type: string[]"

// Words are the words that the compiler knows, by their place.
type Words struct {
	// Actions are those of grants; PolicyActions those of @@allow and @@deny.
	Actions, PolicyActions []string
	// AuthValues are the names after `auth.` in a rule.
	AuthValues []string
	// Partitions are the words after `by` in a rate limit.
	Partitions []string
	// Schemes are the signatures of webhooks.
	Schemes []string
}

// AllWords returns all of them. The caller must not change them.
func AllWords() Words {
	return Words{
		Actions: grantActions, PolicyActions: policyActions, AuthValues: authValues, Partitions: partitions, Schemes: webhookSchemes,
	}
}
