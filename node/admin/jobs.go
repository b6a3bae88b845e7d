package admin

import (
	"context"

	"runner.example/internal/fault"
	"runner.example/keystore"
	"runner.example/state/audit"
	"runner.example/state/jobs"
	"runner.example/state/store"
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
	return ask[jobs.Page](ctx, c, "jobs.list", filter)
}

// GetJob returns a job. The code is NotFound if it does not exist.
func (c *Client) GetJob(ctx context.Context, id string) (jobs.Job, error) {
	return ask[jobs.Job](ctx, c, "jobs.get", JobID{id})
}

// RetryJob lets a job that failed or was cancelled run again, and one that waits at once. The code is
// Conflict for others.
func (c *Client) RetryJob(ctx context.Context, id string) (jobs.Job, error) {
	return ask[jobs.Job](ctx, c, "jobs.retry", JobID{id})
}

// CancelJob ends a job that waits or runs. The code is Conflict if it has ended before.
func (c *Client) CancelJob(ctx context.Context, id string) (jobs.Job, error) {
	return ask[jobs.Job](ctx, c, "jobs.cancel", JobID{id})
}

// EnqueueJob enqueues a job.
func (c *Client) EnqueueJob(ctx context.Context, request EnqueueJob) (jobs.Enqueued, error) {
	return ask[jobs.Enqueued](ctx, c, "jobs.enqueue", request)
}

func (l *Local) listJobs(ctx context.Context, _ keystore.Authority, args jobs.Filter) (page jobs.Page, err error) {
	err = l.Store.View(ctx, func(tx *store.Tx) error {
		page, err = jobs.List(tx, args)
		return err
	})
	return page, err
}

func (l *Local) getJob(ctx context.Context, _ keystore.Authority, args JobID) (job jobs.Job, err error) {
	err = l.Store.View(ctx, func(tx *store.Tx) error {
		j, err := jobs.Get(tx, args.ID)
		if err == nil {
			job = *j
		}
		return err
	})
	return job, err
}

func (l *Local) retryJob(ctx context.Context, who keystore.Authority, args JobID) (jobs.Job, error) {
	return l.changeJob(ctx, who, "jobs.retry", args.ID, func(tx *store.Tx) error {
		_, err := jobs.Retry(tx, who.Schema, &who.Caller, args.ID, l.Keys.Now())
		return err
	})
}

func (l *Local) cancelJob(ctx context.Context, who keystore.Authority, args JobID) (jobs.Job, error) {
	return l.changeJob(ctx, who, "jobs.cancel", args.ID, func(tx *store.Tx) error {
		was, err := jobs.Cancel(tx, &who.Caller, args.ID, l.Keys.Now(), l.KeepJobs)
		if err == nil && !was {
			err = fault.New(fault.Conflict, "the job has ended before")
		}
		return err
	})
}

// changeJob changes a job, with an audit record, and returns it.
func (l *Local) changeJob(ctx context.Context, who keystore.Authority, action, id string, change func(*store.Tx) error) (job jobs.Job, err error) {
	_, err = l.Store.Update(ctx, func(tx *store.Tx) error {
		if err := change(tx); err != nil {
			return err
		}
		j, err := jobs.Get(tx, id)
		if err != nil {
			return err
		}
		job = *j
		return auditJob(tx, who, action, id, j.Name)
	})
	return job, err
}

func auditJob(tx *store.Tx, who keystore.Authority, action, id, name string) error {
	return audit.Append(tx, audit.Record{
		RequestID: who.RequestID, Actor: audit.ActorOf(who.Caller), Action: action, Target: id, Result: audit.OK, Reason: name, Address: who.Address,
	})
}

func (l *Local) enqueueJob(ctx context.Context, who keystore.Authority, args EnqueueJob) (enqueued jobs.Enqueued, err error) {
	if who.Schema == nil {
		return enqueued, fault.New(fault.NotReady, "no release is active")
	}
	request := jobs.Request{Name: args.Name, Params: args.Params, Key: args.Key, RequestID: who.RequestID}
	if request.Delay, err = seconds("delay", args.Delay); err != nil {
		return enqueued, err
	}
	if args.At != "" {
		if request.At, err = jobs.ParseAt(args.At); err != nil {
			return enqueued, err
		}
	}
	if err := keystore.CheckLine("tenant", args.Tenant); err != nil {
		return enqueued, err
	}
	by := who.Caller
	by.Tenant = args.Tenant
	_, err = l.Store.Update(ctx, func(tx *store.Tx) (err error) {
		if args.Fire {
			enqueued, err = jobs.Fire(tx, who.Schema, args.Name, l.Keys.Now())
		} else {
			enqueued, err = jobs.Enqueue(tx, who.Schema, &by, request, l.Keys.Now(), nil)
		}
		if err != nil {
			return err
		}
		return auditJob(tx, who, "jobs.enqueue", enqueued.ID, args.Name)
	})
	return enqueued, err
}
