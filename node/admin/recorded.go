package admin

import (
	"context"
	"encoding/json"
	"time"

	"runner.example/hostabi/recording"
	"runner.example/runtime"
)

// ListRecorded selects recordings.
type ListRecorded struct {
	// Limit is 1-10,000; 0: 100.
	Limit int `json:"limit,omitempty"`
	// Failures leaves out samples that did not fail.
	Failures bool `json:"failures,omitempty"`
}

// RecordedID identifies a recording: it is the id of its request.
type RecordedID struct {
	ID string `json:"id"`
}

// RecordedRun is what a list says of a recording.
type RecordedRun struct {
	ID   string    `json:"id"`
	Time time.Time `json:"time"`
	// Kind is request, job or call.
	Kind    string `json:"kind"`
	Method  string `json:"method"`
	Route   string `json:"route"`
	Handler string `json:"handler"`
	Release string `json:"release,omitempty"`
	// Runs is how often the handler ran for the request, Calls how many calls of the host the last run has.
	Runs  int `json:"runs"`
	Calls int `json:"calls"`
	// Failed tells a failure from a sample.
	Failed bool   `json:"failed"`
	Status int    `json:"status"`
	Code   string `json:"code,omitempty"`
	// Failure is why and where the handler failed; empty: it did not.
	Failure string `json:"failure,omitempty"`
}

// DeleteRecorded names the recordings to delete.
type DeleteRecorded struct {
	// IDs are those of requests. With All they are left out.
	IDs []string `json:"ids,omitempty"`
	All bool     `json:"all,omitempty"`
}

// DeletedRecorded is how many recordings were deleted.
type DeletedRecorded struct {
	Count int `json:"count"`
}

// Replay names what to run again.
type Replay struct {
	// ID is that of the request. Recording, an exported recording, is used in its place.
	ID        string          `json:"id,omitempty"`
	Recording json.RawMessage `json:"recording,omitempty"`
	// Module is a WebAssembly module in place of the one that failed; empty: that one.
	Module []byte `json:"module,omitempty"`
	// Against is the state that answers after a divergence: snapshot or live-copy; empty: the replay ends there.
	Against string `json:"against,omitempty"`
}

// ListRecorded returns the recordings of the node, the newest first.
func (c *Client) ListRecorded(ctx context.Context, request ListRecorded) ([]RecordedRun, error) {
	return ask(ctx, c, OpListRecorded, request)
}

// ShowRecorded returns a recording. The code is NotFound if there is none.
func (c *Client) ShowRecorded(ctx context.Context, id string) (*recording.Recording, error) {
	text, err := ask(ctx, c, OpShowRecorded, RecordedID{id})
	if err != nil {
		return nil, err
	}
	r := new(recording.Recording)
	return r, json.Unmarshal(text, r)
}

// ExportRecorded returns a recording as the text of a file.
func (c *Client) ExportRecorded(ctx context.Context, id string) (json.RawMessage, error) {
	return ask(ctx, c, OpExportRecorded, RecordedID{id})
}

// DeleteRecorded deletes recordings, and returns how many. The code is NotFound if there is none of an id.
func (c *Client) DeleteRecorded(ctx context.Context, request DeleteRecorded) (int, error) {
	done, err := ask(ctx, c, OpDeleteRecorded, request)
	return done.Count, err
}

// Replay runs a recording again.
func (c *Client) Replay(ctx context.Context, request Replay) (*runtime.Replayed, error) {
	text, err := ask(ctx, c, OpReplay, request)
	if err != nil {
		return nil, err
	}
	done := new(runtime.Replayed)
	return done, json.Unmarshal(text, done)
}
