package runner

import (
	"time"

	"runner.example/sdk/go/internal/host"
)

// Jobs enqueues work for after the commit: jobs that the schema declares.
type Jobs struct{ host host.Host }

// JobOptions say when a job runs, and under which key. The zero value lets it run as soon
// as the request is committed.
type JobOptions struct {
	// Delay is how long it waits.
	Delay time.Duration
	// At is when it runs, unless it is zero; a time that has passed means at once. Not
	// together with Delay.
	At time.Time
	// Key: there is one live job of this name and key in a tenant. While it waits or runs,
	// it is given instead of a new one. Empty: there may be any number.
	Key string
}

// EnqueuedJob is the answer of Enqueue.
type EnqueuedJob struct {
	ID string `json:"id"`
	// Created is false if a live job with the key was there.
	Created bool `json:"created"`
}

// Enqueue writes a job into the transaction of the request: it runs if and only if that
// commits. The parameters are a struct or a map, nil for none. They are checked at once;
// wrong ones are invalid.
func (j Jobs) Enqueue(name string, params any, options JobOptions) (EnqueuedJob, error) {
	args := map[string]any{"name": name}
	if params != nil {
		args["params"] = params
	}
	if options.Delay != 0 {
		args["delay"] = seconds(options.Delay)
	}
	if !options.At.IsZero() {
		args["at"] = options.At.UTC().Format(time.RFC3339Nano)
	}
	if options.Key != "" {
		args["key"] = options.Key
	}
	var enqueued EnqueuedJob
	err := callHost(j.host, "jobs.enqueue", args, &enqueued)
	return enqueued, err
}

// Cancel ends a job of the caller's tenant: it does not run any more, and what a run of it
// has written is not committed. It is false if the job has ended before. An unknown id is
// not_found.
func (j Jobs) Cancel(id string) (bool, error) {
	var result struct {
		Cancelled bool `json:"cancelled"`
	}
	err := callHost(j.host, "jobs.cancel", map[string]string{"id": id}, &result)
	return result.Cancelled, err
}

// Job is the job that a handler runs for.
type Job struct {
	// ID is the idempotency key of what may not happen twice: send it along.
	ID string `json:"id"`
	// Attempt counts the runs from 1.
	Attempt int `json:"attempt"`
	// ScheduledFor is when the job was to run first.
	ScheduledFor time.Time `json:"scheduledFor"`
}
