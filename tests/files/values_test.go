package files_test

import (
	"strconv"
	"strings"
	"testing"

	"runner.example/tests/harness"
)

// JSON values are looked through for files, as rows are. What a client has sent must stay as it was, and take no more time
// than its length allows.
func TestJSONValuesAreReadAsTheyWereWritten(t *testing.T) {
	a := harness.NewApp(t, `
entity Doc {
  id: id
  title: string(1..200) @unique
  value: json
  photo: file(1mb)?
  @@allow read, write to anonymous
}
routes("/v1", auth: none, rateLimit: none) {
  PUT /docs/:title -> writeDoc
  GET /docs/:title -> readDoc
}
`, "")
	a.Write("handlers/docs.ts", `
import { file, insert, noContent, ok, query, type RouteRequest } from "@runner/sdk";

export async function writeDoc(req: RouteRequest) {
  await insert("Doc", { title: req.params.title, value: req.body(), photo: await file("in " + req.params.title) });
  return noContent();
}

export async function readDoc(req: RouteRequest) {
  const { value, photo } = await query("Doc").where("title", "=", req.params.title).firstOrFail();
  if ((await photo!.text()) !== "in " + req.params.title) throw new Error("another file");
  return ok(value);
}
`)
	a.Must("build")
	server := a.Serve()
	var names []string
	for i := range 10_000 {
		names = append(names, strconv.Quote(strconv.Itoa(i)+"n")+":null")
	}
	many := "{" + strings.Join(names, ",") + "}"
	for title, value := range map[string]string{
		"null":      `[null,{"a":null},[null,[{"a":[]}]],"text",1]`,
		"prototype": `[{"__proto__":{"sha256":"a"},"constructor":{}},{},"",{"__proto__":null}]`,
		"stored":    `[{"a":{"id":"1","name":"n","type":"t","size":1,"sha256":"a","more":[{"id":2}]}},{"a":[[{"sha256":"b"}]]}]`,
		"deep":      strings.Repeat(`[{"a":`, 25) + `{"sha256":"a"}` + strings.Repeat(`}]`, 25),
		"objects":   `[` + many + strings.Repeat(`,{}`, 40_000) + `]`,
		"lists":     `[{"0":{},"length":{},"map":{}}` + strings.Repeat(`,[]`, 40_000) + `]`,
		"nulls":     `[` + many + strings.Repeat(`,null`, 40_000) + `]`,
	} {
		if got := server.Do("PUT", "/v1/docs/"+title, value, "Content-Type: application/json"); got.Status != 204 {
			t.Fatalf("%s is not written: %d %.300s\n%s", title, got.Status, got.Body, server.Stderr.String())
		}
		if got := server.Do("GET", "/v1/docs/"+title, ""); got.Status != 200 || got.Body != value {
			t.Errorf("%s: %d %.300s\n%s", title, got.Status, got.Body, server.Stderr.String())
		}
	}
}
