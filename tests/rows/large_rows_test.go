package rows_test

import (
	"encoding/json"
	"strings"
	"testing"

	"runner.example/tests/harness"
)

const documentsSchema = `app documents

entity Document {
  id: id
  title: string(1..20)
  body: text(0..2000000)
  bodyCopy: text? @hidden
}

apiKeys {
  scopes: { docs: @system("docs") { @grant read, write on Document } }
}

routes("/v1", auth: apiKey(docs), rateLimit: none) { GET /documents -> listDocuments }
`

// Rows of 1 MiB, the limit of a row, are imported, listed, exported and changed; 17 of them
// are longer than one answer of the server.
func TestRowsOfOneMebibyteAreImportedAndExported(t *testing.T) {
	a := harness.NewApp(t, documentsSchema, "")
	const count = 17
	body := strings.Repeat("<p>tea & \"é\"</p>\n", 1<<20/18-10)
	var lines strings.Builder
	for i := range count {
		row, err := json.Marshal(map[string]string{"title": "d" + string(rune('a'+i)), "body": body})
		if err != nil {
			t.Fatal(err)
		}
		lines.Write(append(row, '\n'))
	}
	a.Write("documents.jsonl", lines.String())
	a.Must("data", "import", "Document", "documents.jsonl")
	for _, file := range []string{"export.jsonl", "export.csv"} {
		a.Must("data", "export", "Document", "--out", file)
		a.Must("data", "delete", "Document", "--where", "title startsWith d")
		a.Must("data", "import", "Document", file)
	}
	var rows []struct{ ID, Title, Body string }
	out := a.Must("data", "list", "Document", "--order", "title asc", "--json")
	if err := json.Unmarshal([]byte(out), &rows); err != nil || len(rows) != count {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	for i, row := range rows {
		if row.Title != "d"+string(rune('a'+i)) || row.Body != body {
			t.Errorf("row %d is %q with %d bytes", i, row.Title, len(row.Body))
		}
	}
	a.Must("data", "update", "Document", "--where", "title = da", "--set", "title=first")

	a.Write("long.jsonl", `{"title":"x","body":"`+strings.Repeat("x", 1<<20)+`"}`+"\n")
	r := a.Run("data", "import", "Document", "long.jsonl")
	for _, want := range []string{"long.jsonl:1: the Document has 1048", "the limit of a row is 1048576"} {
		if r.Status != 3 || !strings.Contains(r.Stderr, want) {
			t.Errorf("exits %d, want 3 and %q\n%s", r.Status, want, r.Stderr)
		}
	}
}
