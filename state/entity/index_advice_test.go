package entity_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"runner.example/internal/caller"
	"runner.example/internal/diag"
	"runner.example/schema/compiler"
	"runner.example/state/entity"
)

func TestAMissingIndexIsLoggedOnce(t *testing.T) {
	const text = `app a
enum Status { open, paid, gone }
entity Sale {
  id: id
  status: Status
  region: string(1..10)
  total: int
  note: json?
  @@index(region, total)
  @@allow read, write to session when true
}
auth { session cookie {} }
apiKeys { scopes: { s: @system("s") { @grant read on Sale } } }
routes("/", auth: session, rateLimit: none) { GET /x -> x }`
	h := newFixture(t, text)
	const rows = 1100
	for from := 0; from < rows; from += 100 {
		var values []string
		for i := from; i < from+100; i++ {
			values = append(values, fmt.Sprintf(`{"status":"open","region":"r%d","total":%d}`, i%2, i))
		}
		h.must(reader, "insert", `{"into":"Sale","values":[`+strings.Join(values, ",")+`]}`)
	}
	var log bytes.Buffer
	sources := []diag.Source{{Name: "app.schema", Text: []byte(text)}}
	s, _ := compiler.Compile(sources, compiler.Options{})
	var err error
	h.model, err = entity.Activate(context.Background(), h.store, s, sources, entity.Options{CursorKey: [32]byte{7}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ op, args, want string }{
		{"query", `{"from":"Sale","orderBy":[["total","desc"]],"limit":5}`, `operation=query entity=Sale rows=1100 add="@@index(total desc)"`},
		{"query", `{"from":"Sale","orderBy":[["total","desc"]],"limit":9}`, ""}, // the same index
		{"query", `{"from":"Sale","where":[["status","=","open"]],"orderBy":[["total","asc"]],"limit":5}`, `operation=query entity=Sale rows=1100 add="@@index(status, total)"`},
		{"count", `{"from":"Sale","where":[["status","=","paid"]]}`, `operation=count entity=Sale rows=1100 add=@@index(status)`},
		{"query", `{"from":"Sale","where":[["status","=","paid"]]}`, `operation=query entity=Sale rows=1100 add=@@index(status)`},
		{"count", `{"from":"Sale","where":[["total",">",5000]]}`, `operation=count entity=Sale rows=1100 add=@@index(total)`},
		{"count", `{"from":"Sale","where":[["status","=","open"]]}`, ""}, // all rows match: an index saves nothing
		{"query", `{"from":"Sale","where":[["region","=","R9","ignoreCase"]]}`, `operation=query entity=Sale rows=1100 add="region @index(ignoreCase)"`},
		{"aggregate", `{"from":"Sale","where":[["region","startsWith","X","ignoreCase"]],"count":true}`, `operation=aggregate entity=Sale rows=1100 add="region @index(ignoreCase)"`},
		{"query", `{"from":"Sale","where":[["region","contains","X","ignoreCase"]]}`, ""}, // no index can serve it
		{"query", `{"from":"Sale","limit":5}`, ""},
		{"query", `{"from":"Sale","orderBy":[["id","desc"]],"limit":5}`, ""},
		{"query", `{"from":"Sale","where":[["region","=","r1"]],"orderBy":[["total","asc"]],"limit":5}`, ""}, // 550 rows
		{"count", `{"from":"Sale","where":[["note","!=",null]]}`, ""},                                        // no index can serve it
	} {
		log.Reset()
		h.must(reader, tt.op, tt.args)
		if got := log.String(); tt.want == "" && got != "" || !strings.Contains(got, tt.want) || tt.want != "" && !strings.Contains(got, `level=WARN msg="index missing; rows are scanned"`) {
			t.Errorf("%s %s logs %q, want %q", tt.op, tt.args, got, tt.want)
		}
	}
	log.Reset()
	h.must(&caller.Caller{Kind: caller.System}, "query", `{"from":"Sale","where":[["total","=",5]],"orderBy":[["status","asc"]]}`)
	if log.Len() > 0 {
		t.Errorf("an operator's query logs %s", log.String())
	}
}
