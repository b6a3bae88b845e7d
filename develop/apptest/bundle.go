package apptest

import (
	"crypto/sha256"
	"encoding/base64"

	"runner.example/internal/diag"
	"runner.example/internal/secret"
	"runner.example/node/app"
	"runner.example/runtime"
	"runner.example/schema"
)

// Bundle returns the bundle of an app, whose modules are built. Its secrets have values made for tests: those of a
// server are not read.
func Bundle(a *app.App, s *schema.Schema, sources []diag.Source) (*runtime.Bundle, error) {
	modules, err := runtime.ReadModules(a.Dir)
	if err != nil {
		return nil, err
	}
	b := &runtime.Bundle{Schema: s, Sources: sources, Modules: modules}
	if b.App, err = a.Name(s); err != nil {
		return nil, err
	}
	none := func(string) (string, bool) { return "", false }
	if b.Secrets, err = secret.Resolve(s.Secrets, none, secretTexts(s)); err != nil {
		return nil, err
	}
	return b, a.ReadTrees(b)
}

// secretTexts returns the values by name. Each is valid for every scheme of signatures too.
func secretTexts(s *schema.Schema) map[string]string {
	texts := map[string]string{}
	for _, name := range s.Secrets {
		sum := sha256.Sum256([]byte("secret of a test: " + name))
		texts[name] = "whsec_" + base64.StdEncoding.EncodeToString(sum[:])
	}
	return texts
}
