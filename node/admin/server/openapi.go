package server

import (
	"cmp"
	"encoding"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"runner.example/internal/settings"
	"runner.example/keystore"
	"runner.example/node/admin"
	"runner.example/node/cluster"
	"runner.example/state/audit"
	"runner.example/state/jobs"
	"runner.example/state/store"
)

// OpenAPI returns the OpenAPI document of a RemoteServer: its operations with their arguments,
// results and roles. docs/admin-openapi.json is this document.
func OpenAPI() []byte {
	d := &document{schemas: map[string]any{}, types: map[string]reflect.Type{}}
	paths := map[string]any{
		admin.RemotePath + admin.BlobPath + "{sha256}": map[string]any{"put": d.uploadOperation(admin.OpUpload, "a release")},
		admin.RemotePath + admin.BatchPath:             map[string]any{"put": d.batchOperation()},
		admin.RemotePath + admin.FilePath + "{sha256}": map[string]any{"put": d.uploadOperation(admin.OpPutFile, "a row, for an import that follows within an hour")},
		admin.RemotePath + admin.OpReadFile.Name: map[string]any{"post": d.operation(admin.OpReadFile.Name, admin.OpReadFile.Role, reflect.TypeFor[admin.FileDigest](), map[string]any{
			"description": "The contents of a file of a row.",
			"content":     map[string]any{"application/octet-stream": map[string]any{}},
		})},
		admin.RemotePath + admin.OpBackup.Name: map[string]any{"post": d.operation(admin.OpBackup.Name, admin.OpBackup.Role, reflect.TypeFor[admin.BackupRequest](), map[string]any{
			"description": "The backup. If the trailer Backup-Error is present, the backup is not complete: it has the refusal.",
			"content":     map[string]any{"application/octet-stream": map[string]any{}},
		})},
	}
	for _, name := range slices.Sorted(maps.Keys(handlers)) {
		op := handlers[name]
		paths[admin.RemotePath+name] = map[string]any{"post": d.operation(name, op.role, op.args, map[string]any{
			"description": "The result.", "content": jsonContent(d.schema(op.result)),
		})}
	}
	text, err := json.MarshalIndent(map[string]any{
		"openapi": "3.1.0",
		"info": map[string]any{
			"title": "runner: operating a node", "version": "1",
			"description": "The admin listener of a node. Every request needs a platform key, which `runner keys create` creates. The role of the key must be the one of the operation or a stronger one: read, deploy, admin.",
		},
		"servers": []any{map[string]any{"url": "https://{node}", "variables": map[string]any{"node": map[string]any{"default": "localhost:9443", "description": "[admin] listen"}}}},
		"paths":   paths,
		"components": map[string]any{
			"securitySchemes": map[string]any{"platformKey": map[string]any{"type": "http", "scheme": "bearer", "description": "The token of a platform key: rnp_ and 36 characters."}},
			"schemas":         d.schemas,
			"responses": map[string]any{"Refusal": map[string]any{
				"description": "Nothing was done.", "content": map[string]any{admin.RefusalType: map[string]any{"schema": d.schema(reflect.TypeFor[admin.Refusal]())}},
				"headers": map[string]any{"Retry-After": map[string]any{"description": "Seconds, with the codes rate_limited, overloaded and key_store_stale.", "schema": map[string]any{"type": "integer"}}},
			}},
		},
	}, "", "  ")
	if err != nil {
		panic("BUG: encode the OpenAPI document: " + err.Error())
	}
	return append(text, '\n')
}

// security is that of every operation.
var security = []any{map[string]any{"platformKey": []any{}}}

// document collects the schemas of an OpenAPI document.
type document struct {
	schemas map[string]any
	types   map[string]reflect.Type // of schemas
}

func (d *document) operation(name string, role keystore.Role, args reflect.Type, result map[string]any) map[string]any {
	return map[string]any{
		"operationId": name, "summary": "Needs the role " + string(role) + ".", "x-role": role, "security": security,
		"requestBody": map[string]any{"required": true, "content": jsonContent(d.schema(args))},
		"responses":   map[string]any{"200": result, "default": map[string]any{"$ref": "#/components/responses/Refusal"}},
	}
}

func (d *document) uploadOperation(op admin.Stream, of string) map[string]any {
	return map[string]any{
		"operationId": op.Name, "summary": "Store a file of " + of + ". Needs the role " + string(op.Role) + ".", "x-role": op.Role, "security": security,
		"parameters": []any{map[string]any{
			"name": "sha256", "in": "path", "required": true, "description": "SHA-256 of the file.", "schema": d.schema(reflect.TypeFor[store.Digest]()),
		}},
		"requestBody": map[string]any{"required": true, "content": map[string]any{"application/octet-stream": map[string]any{}}},
		"responses": map[string]any{
			"200":     map[string]any{"description": "The file is stored.", "content": jsonContent(map[string]any{"type": "object"})},
			"default": map[string]any{"$ref": "#/components/responses/Refusal"},
		},
	}
}

func (d *document) batchOperation() map[string]any {
	return map[string]any{
		"operationId": admin.OpUploadBatch.Name, "summary": "Store many small contents of a release. Needs the role " + string(admin.OpUploadBatch.Role) + ".",
		"description": "The body has, for each content, its SHA-256 in 32 bytes, its size in 8 bytes, big endian, and its bytes.",
		"x-role":      admin.OpUploadBatch.Role, "security": security,
		"requestBody": map[string]any{"required": true, "content": map[string]any{"application/octet-stream": map[string]any{}}},
		"responses": map[string]any{
			"200":     map[string]any{"description": "The contents are stored.", "content": jsonContent(map[string]any{"type": "object"})},
			"default": map[string]any{"$ref": "#/components/responses/Refusal"},
		},
	}
}

func jsonContent(schema map[string]any) map[string]any {
	return map[string]any{"application/json": map[string]any{"schema": schema}}
}

// described are the schemas of types that are not encoded by their fields.
var described = map[reflect.Type]map[string]any{
	reflect.TypeFor[json.RawMessage]():    {"description": "Any JSON value."},
	reflect.TypeFor[[]byte]():             {"type": "string", "contentEncoding": "base64"},
	reflect.TypeFor[time.Time]():          date,
	reflect.TypeFor[audit.Timestamp]():    date,
	reflect.TypeFor[jobs.Time]():          date,
	reflect.TypeFor[jobs.State]():         {"type": "string", "enum": jobs.States},
	reflect.TypeFor[cluster.Role]():       {"type": "string", "enum": []any{cluster.Voter, cluster.Edge}},
	reflect.TypeFor[store.Digest]():       {"type": "string", "pattern": "^[0-9a-f]{64}$"},
	reflect.TypeFor[settings.Source]():    {"type": "string", "enum": []any{settings.Default, settings.File, settings.Environment, settings.Flag, settings.Machine}},
	reflect.TypeFor[keystore.Role]():      {"type": "string", "enum": keystore.Roles()},
	reflect.TypeFor[keystore.OwnerKind](): {"type": "string", "enum": []any{keystore.OwnerUser, keystore.OwnerKey}},
}

var date = map[string]any{"type": "string", "format": "date-time"}

// names are those of schemas whose type has the name of another type.
var names = map[reflect.Type]string{reflect.TypeFor[keystore.Page](): "KeyPage"}

// schema returns the JSON Schema of a type: a reference if the type has a name and fields.
func (d *document) schema(t reflect.Type) map[string]any {
	if s, ok := described[t]; ok {
		return s
	}
	if t.Kind() == reflect.Pointer {
		return map[string]any{"anyOf": []any{d.schema(t.Elem()), map[string]any{"type": "null"}}}
	}
	// A type with its own encoding says what it encodes.
	if own, ok := reflect.Zero(t).Interface().(interface{ JSONForm() []any }); ok {
		return d.form(t, own.JSONForm())
	}
	if t.Implements(reflect.TypeFor[json.Marshaler]()) || t.Implements(reflect.TypeFor[encoding.TextMarshaler]()) {
		panic(fmt.Sprintf("BUG: %v has its own encoding: describe it", t))
	}
	switch t.Kind() {
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Int, reflect.Int64:
		return map[string]any{"type": "integer"}
	case reflect.Uint32, reflect.Uint64:
		return map[string]any{"type": "integer", "minimum": 0}
	case reflect.Float64:
		return map[string]any{"type": "number"}
	case reflect.Array:
		return map[string]any{"type": "array", "items": d.schema(t.Elem()), "minItems": t.Len(), "maxItems": t.Len()}
	case reflect.Slice:
		return map[string]any{"type": []any{"array", "null"}, "items": d.schema(t.Elem())}
	case reflect.Map:
		return map[string]any{"type": []any{"object", "null"}, "additionalProperties": d.schema(t.Elem())}
	case reflect.Struct:
		if t.Name() == "" {
			return d.object(t)
		}
		return d.reference(t, t)
	}
	panic(fmt.Sprintf("BUG: %v has no JSON Schema", t))
}

// form returns the schema of a type that encodes all of these values as one.
func (d *document) form(t reflect.Type, values []any) map[string]any {
	if len(values) > 1 {
		var all []any
		for _, v := range values {
			all = append(all, d.schema(reflect.TypeOf(v)))
		}
		return map[string]any{"allOf": all}
	}
	only := reflect.TypeOf(values[0])
	if _, ok := described[only]; ok {
		return d.schema(only)
	}
	return d.reference(t, only)
}

// reference returns a reference to the schema of a type that is encoded as the struct form. The schema is
// added to the document.
func (d *document) reference(t, form reflect.Type) map[string]any {
	name := cmp.Or(names[t], strings.ToUpper(t.Name()[:1])+t.Name()[1:])
	if other, ok := d.types[name]; !ok {
		d.types[name] = t // before its fields: one may have the same type
		d.schemas[name] = d.object(form)
	} else if other != t {
		panic(fmt.Sprintf("BUG: two types have the name %s: %v and %v", name, t, other))
	}
	return map[string]any{"$ref": "#/components/schemas/" + name}
}

// object returns the schema of a struct.
func (d *document) object(t reflect.Type) map[string]any {
	properties, required := map[string]any{}, []string{}
	d.fields(t, properties, &required)
	return map[string]any{"type": "object", "properties": properties, "required": required}
}

// fields adds the fields of a struct, with those of embedded structs.
func (d *document) fields(t reflect.Type, properties map[string]any, required *[]string) {
	for field := range t.Fields() {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case field.Anonymous && name == "":
			d.fields(field.Type, properties, required)
			continue
		case name == "-" || !field.IsExported():
			continue
		case name == "":
			name = field.Name
		}
		properties[name] = d.schema(field.Type)
		if !strings.Contains(options, "omitempty") && !strings.Contains(options, "omitzero") {
			*required = append(*required, name)
		}
	}
}
