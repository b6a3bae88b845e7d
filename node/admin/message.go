package admin

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"time"

	"runner.example/internal/console"
	"runner.example/internal/diag"
	"runner.example/internal/fault"
)

const (
	// RemotePath begins the path of every operation over the network: POST /v1/<operation>. On the socket
	// it is POST /<operation>.
	RemotePath = "/v1/"
	// BlobPath begins the rest of the path of an upload, which ends with the digest: PUT blobs/<sha256>.
	BlobPath = "blobs/"
	// BatchPath is the rest of the path of an upload of many blobs.
	BatchPath = BlobPath + "batch"
	// FilePath begins the rest of the path under which the contents of a file of a row are stored: PUT files/<sha256>.
	FilePath = "files/"
	// BackupError is the trailer that contains the Refusal that ended a backup.
	BackupError = "Backup-Error"
	// MaxMessage is the limit of a request and of an answer, in bytes.
	MaxMessage = 64 << 20
)

// RefusalType is the media type of a Refusal.
const RefusalType = "application/problem+json"

// Refusal is an error as it is sent to an operator: a problem document of RFC 9457.
type Refusal struct {
	// Type is always about:blank, so Title is the phrase of Status, which follows from Code.
	Type   string     `json:"type"`
	Title  string     `json:"title"`
	Status int        `json:"status"`
	Code   fault.Code `json:"code"`
	Detail string     `json:"detail"`
	// Hint is the next command to type; empty: there is none.
	Hint string `json:"hint,omitempty"`
	// Findings are the diagnostics of a release that cannot be activated, as in diag.Excerpt, and Total is the number
	// of all.
	Findings []diag.Diagnostic `json:"findings,omitempty"`
	Total    int               `json:"total,omitempty"`
}

// RefusalOf returns the refusal with the code, the detail and the hint of a fault. If a *console.Problems is in its
// chain, the refusal has its diagnostics.
func RefusalOf(f *fault.Fault) Refusal {
	outcome, _ := fault.OutcomeOf(f.Code)
	r := Refusal{
		Type: "about:blank", Title: http.StatusText(outcome.Admin), Status: outcome.Admin,
		Code: f.Code, Detail: f.Detail, Hint: f.Hint,
	}
	if problems, ok := errors.AsType[*console.Problems](f); ok {
		shown := problems.Excerpt()
		r.Findings, r.Total = shown.Findings, shown.Total
	}
	return r
}

// fault returns the fault that RefusalOf was given.
func (r Refusal) fault() *fault.Fault {
	if len(r.Findings) == 0 {
		return fault.New(r.Code, "%s", r.Detail).WithHint(r.Hint)
	}
	problems := &console.Problems{What: r.Detail, List: r.Findings, Total: r.Total}
	return fault.Wrap(problems, r.Code, "%s", r.Detail).WithHint(r.Hint)
}

// Marshal returns the JSON of v. Rows in it stay as they are: json.Marshal would escape <, >
// and & in them.
func Marshal(v any) ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return out.Bytes(), err
}

// SecondsOf returns d in whole seconds, as requests have it.
func SecondsOf(d time.Duration) int64 { return int64(d / time.Second) }

// DurationOf converts the number of seconds of the argument with that name, and refuses what a duration cannot hold.
func DurationOf(name string, n int64) (time.Duration, error) {
	if n > math.MaxInt64/int64(time.Second) || n < math.MinInt64/int64(time.Second) {
		return 0, fault.New(fault.Invalid, "%s is longer than 292 years", name)
	}
	return time.Duration(n) * time.Second, nil
}
