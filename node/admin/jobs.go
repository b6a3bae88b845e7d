package admin

import (
	"context"

	"runner.example/state/jobs"
)

// JobID identifies a job.
type JobID struct {
	ID string `json:"id"`
}

// CancelJobs selects jobs that wait or run.
type CancelJobs struct {
	// Name is that of the jobs, Tenant the tenant of their callers; empty: any.
	Name   string `json:"name,omitempty"`
	Tenant string `json:"tenant,omitempty"`
	// Cursor continues a cancellation: it is the NextCursor of the answer before.
	Cursor string `json:"cursor,omitempty"`
}

// CancelledJobs is one part of a cancellation.
type CancelledJobs struct {
	// Count is the number of jobs that this part has cancelled.
	Count int `json:"count"`
	// NextCursor continues; empty at the end.
	NextCursor string `json:"nextCursor,omitempty"`
	// Left is true at the end if jobs were enqueued all the time, so that some are left.
	Left bool `json:"left,omitempty"`
}

// EnqueueJob describes a job to be enqueued.
type EnqueueJob struct {
	Name string `json:"name"`
	// Params is a JSON object with the parameters, unchanged; empty is the same as {}.
	Params []byte `json:"params,omitempty"`
	// Tenant is the only tenant whose rows the job reaches; empty: all, or those of its scope.
	Tenant string `json:"tenant,omitempty"`
	// Delay is how long the job waits, in seconds.
	Delay int64 `json:"delay,omitempty"`
	// At is when it runs, as RFC 3339; empty: after the delay.
	At string `json:"at,omitempty"`
	// Key: while a job of this name, tenant and key waits or runs, it is the answer instead of a new one.
	Key string `json:"key,omitempty"`
	// Fire enqueues the job as its schedule does; the others are not given then.
	Fire bool `json:"fire,omitempty"`
}

// ListJobs returns one page of jobs, the newest first.
func (c *Client) ListJobs(ctx context.Context, filter jobs.Filter) (jobs.Page, error) {
	return ask(ctx, c, OpListJobs, filter)
}

// GetJob returns a job. The code is NotFound if it does not exist.
func (c *Client) GetJob(ctx context.Context, id string) (jobs.Job, error) {
	return ask(ctx, c, OpGetJob, JobID{id})
}

// RetryJob lets a job that failed or was cancelled run again, and one that waits at once. The code is
// Conflict for others.
func (c *Client) RetryJob(ctx context.Context, id string) (jobs.Job, error) {
	return ask(ctx, c, OpRetryJob, JobID{id})
}

// CancelJob ends a job that waits or runs. The code is Conflict if it has ended before.
func (c *Client) CancelJob(ctx context.Context, id string) (jobs.Job, error) {
	return ask(ctx, c, OpCancelJob, JobID{id})
}

// CancelJobs cancels some of the jobs that wait or run, for about half a second. The caller repeats it with the
// NextCursor of the answer until that is empty. Meanwhile no node starts the selected jobs.
func (c *Client) CancelJobs(ctx context.Context, args CancelJobs) (CancelledJobs, error) {
	return ask(ctx, c, OpCancelJobs, args)
}

// EnqueueJob enqueues a job.
func (c *Client) EnqueueJob(ctx context.Context, request EnqueueJob) (jobs.Enqueued, error) {
	return ask(ctx, c, OpEnqueueJob, request)
}
