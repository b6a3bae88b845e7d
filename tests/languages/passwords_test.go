package languages_test

import (
	"strings"
	"testing"

	"runner.example/tests/harness"
)

const passwordSchema = `app passwords
functions(auth: none, rateLimit: none) {
  verdicts() -> json
  sideBySide() -> json
  refused() -> json
}
`

const passwordHandlers = `import { HostError, ok, password } from "@runner/sdk";

export async function verdicts() {
  const hash = await password.hash("pässword");
  const bcrypt = "$2b$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW"; // of "secret", by bcryptjs
  return ok([
    hash.startsWith("$argon2id$v=19$m=19456,t=2,p=1$"), await password.verify("pässword", hash), await password.verify("password", hash),
    await password.verify("pässword", null), await password.verify("pässword", undefined), await password.verify("secret", bcrypt),
    await password.verify("Secret", bcrypt),
  ]);
}

export async function sideBySide() {
  const hashes = await Promise.all(["a", "b", "c", "d"].map(password.hash));
  const found = await Promise.all(hashes.map((hash, i) => password.verify("abcd"[i], hash)));
  return ok([new Set(hashes).size, found.every((one) => one && !one.rehash)]);
}

export async function refused() {
  const what = (error: unknown) => (error instanceof HostError ? [error.code, error.message, error.op] : [(error as Error).name, (error as Error).message]);
  return ok([
    await password.verify("x", "plain").catch(what), await password.verify("x", "$argon2id$v=19$m=1,t=1,p=1$c2FsdHNhbHQ$c2FsdHNhbHRzYWx0c2FsdA").catch(what),
    await password.verify("x", "$scrypt$ln=20,r=8,p=1$c2FsdHNhbHQ$c2FsdHNhbHRzYWx0c2FsdA").catch(what), await password.hash(7 as any).catch(what),
  ]);
}
`

func TestHandlersHashPasswords(t *testing.T) {
	t.Parallel()
	a := harness.NewApp(t, passwordSchema, "[sandbox]\ncpu = \"1m\"\n[runtime]\ntimeout = \"60s\"\n[password]\nqueue_wait = \"1m\"\n")
	a.Write("handlers/app.ts", passwordHandlers)
	a.Must("build")
	for function, want := range map[string]string{
		"verdicts":   `[true,{"rehash":false},false,false,false,{"rehash":true},false]`,
		"sideBySide": `[4,true]`,
		"refused": `[["invalid","password.verify: member \"hash\" is not a hash of a known kind: Argon2id, Argon2i, bcrypt, scrypt and PBKDF2 are known, as PHC strings and as Django, passlib and Werkzeug write them","password.verify"],` +
			`["invalid","password.verify: member \"hash\" is not a valid hash of Argon2: m must be at least 8 times p","password.verify"],` +
			`["too_large","password.verify: verifying this hash needs 1gb of memory; the limit is the 128mb of [password] max_memory: raise it","password.verify"],` +
			`["TypeError","password.hash: a password is a string"]]`,
	} {
		if got := strings.TrimSpace(a.Must("call", function)); got != want {
			t.Errorf("%s answers %s\nwant %s", function, got, want)
		}
	}
	if out := a.Must("bench-handler", "build/passwords.wasm", "sideBySide", "-n", "3"); out == "" {
		t.Error("bench-handler prints nothing")
	}
}
