package admin

import (
	"bytes"
	"encoding/json"
	"math"
	"time"

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
	// BackupError is the trailer that contains the Refusal that ended a backup.
	BackupError = "Backup-Error"
	// MaxMessage is the limit of a request and of an answer, in bytes.
	MaxMessage = 64 << 20
)

// Refusal is an error as it is sent to an operator.
type Refusal struct {
	Code   fault.Code `json:"code"`
	Detail string     `json:"detail"`
	// Hint is the next command to type; empty: there is none.
	Hint string `json:"hint,omitempty"`
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
