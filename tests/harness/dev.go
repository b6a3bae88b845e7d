package harness

import (
	"testing"
)

const DevSchema = `app little

apiKeys { scopes: { say: @system("little.say") {} } }

routes("/v1", auth: none, rateLimit: none) {
  GET /hello -> hello
  GET /boom/:what -> boom
  GET /secret -> hello (auth: apiKey(say))
}
`

// HelloSource is a TypeScript file whose handler hello answers text.
func HelloSource(text string) string {
	return `import { ok, type RouteRequest } from "@runner/sdk";
export const hello = () => ok(` + "`" + text + "`" + `);
export function boom(req: RouteRequest) {
  console.warn("before it " + req.params.what);
  throw new Error("it was " + req.params.what);
}
`
}

// Develop starts `runner dev` on a small TypeScript app whose hello answers "one".
func Develop(t *testing.T) *Server {
	t.Helper()
	a := NewApp(t, DevSchema, "")
	a.Write("handlers/hello.ts", HelloSource("one"))
	return a.Start("dev")
}
