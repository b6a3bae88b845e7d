package admin

import (
	"context"

	"runner.example/state/jobs"
)

// JobID identifies a job.
type JobID struct {
	ID string `json:"id"`
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

// EnqueueJob enqueues a job.
func (c *Client) EnqueueJob(ctx context.Context, request EnqueueJob) (jobs.Enqueued, error) {
	return ask(ctx, c, OpEnqueueJob, request)
}
