package hostabi_test

import (
	"fmt"
	"strings"
	"testing"

	"runner.example/hostabi"
)

// Rows with files, and links that work, are in tests/files.
func TestOnlyTheFileOfARowCanBeSigned(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	id := g.must("file.create", `{"name":"a.txt","data":"hello"}`)["id"].(string)
	for args, text := range map[string]string{
		`{"id":1,"expires":1}`:                             `"id"`,
		`{"id":%q}`:                                        `member "expires" is missing`,
		`{"id":%q,"expires":null}`:                         `member "expires" must not be null`,
		`{"id":%q,"expires":"10m"}`:                        `member "expires" must be a whole number`,
		`{"id":%q,"expires":0}`:                            `from 1 to 604800 seconds (7 days)`,
		`{"id":%q,"expires":-1}`:                           `from 1 to 604800 seconds (7 days)`,
		`{"id":%q,"expires":604801}`:                       `from 1 to 604800 seconds (7 days)`,
		`{"id":%q,"expires":9007199254740991}`:             `member "expires" must be`,
		`{"id":%q,"expires":60,"disposition":"x"}`:         `member "disposition" must be inline or attachment`,
		`{"id":%q,"expires":60,"name":""}`:                 `member "name" is not the name of a file`,
		`{"id":%q,"expires":60,"name":"a/b"}`:              `member "name" is not the name of a file`,
		`{"id":%q,"expires":60,"other":1}`:                 `other`,
		`{"id":%q,"expires":60,"disposition":"inline"}`:    `this file is not in a row that the run has read or written`,
		`{"id":%q,"expires":604800,"name":"b.txt"}`:        `this file is not in a row that the run has read or written`,
		`{"id":%q,"expires":1,"disposition":"attachment"}`: `this file is not in a row that the run has read or written`,
	} {
		if strings.Contains(args, "%q") {
			args = fmt.Sprintf(args, id)
		}
		if got, n := g.op("file.sign", args); n != invalid || !strings.Contains(got["message"].(string), text) {
			t.Errorf("%s: %d %v, want %s", args, n, got, text)
		}
	}
	if got, n := g.op("file.sign", `{"id":"01h0000000000000000000000a","expires":60}`); n != notFound {
		t.Errorf("a file that the run does not know: %v", got)
	}
	g.call.ReadOnly = true
	if got, n := g.op("file.sign", fmt.Sprintf(`{"id":%q,"expires":60}`, id)); n != denied || !strings.Contains(got["message"].(string), "live route") {
		t.Errorf("a watch of a live route: %d %v", n, got)
	}
	g.call.ReadOnly = false
	g.call.ReleaseFiles()
}
