package server

import (
	"context"

	"runner.example/internal/fault"
	"runner.example/keystore"
	"runner.example/node/admin"
	"runner.example/state/audit"
	"runner.example/state/jobs"
	"runner.example/state/store"
)

func (l *Local) listJobs(ctx context.Context, _ keystore.Authority, args jobs.Filter) (page jobs.Page, err error) {
	err = l.Store.View(ctx, func(tx *store.Tx) error {
		page, err = jobs.List(tx, args)
		return err
	})
	return page, err
}

func (l *Local) getJob(ctx context.Context, _ keystore.Authority, args admin.JobID) (job jobs.Job, err error) {
	err = l.Store.View(ctx, func(tx *store.Tx) error {
		j, err := jobs.Get(tx, args.ID)
		if err == nil {
			job = *j
		}
		return err
	})
	return job, err
}

func (l *Local) retryJob(ctx context.Context, who keystore.Authority, args admin.JobID) (jobs.Job, error) {
	return l.changeJob(ctx, who, "jobs.retry", args.ID, func(tx *store.Tx) error {
		_, err := jobs.Retry(tx, who.Schema, &who.Caller, args.ID, l.Keys.Now())
		return err
	})
}

func (l *Local) cancelJob(ctx context.Context, who keystore.Authority, args admin.JobID) (jobs.Job, error) {
	return l.changeJob(ctx, who, "jobs.cancel", args.ID, func(tx *store.Tx) error {
		was, err := jobs.Cancel(tx, &who.Caller, args.ID, l.Keys.Now(), l.KeepJobs)
		if err == nil && !was {
			err = fault.New(fault.Conflict, "the job has ended before")
		}
		return err
	})
}

func (l *Local) cancelJobs(ctx context.Context, who keystore.Authority, args admin.CancelJobs) (done admin.CancelledJobs, err error) {
	selection := jobs.Selection{Name: args.Name, Tenant: args.Tenant}
	some, err := jobs.CancelSome(ctx, l.Store, selection, args.Cursor, l.Keys.Now, l.KeepJobs, func(tx *store.Tx, count int) error {
		record := audit.Record{
			RequestID: who.RequestID, Actor: audit.ActorOf(who.Caller), Action: "jobs.cancelAll", Target: args.Name,
			Result: audit.OK, Address: who.Address, Count: count,
		}
		if args.Tenant != "" {
			record.Reason = "tenant " + args.Tenant
		}
		return audit.Append(tx, record)
	})
	return admin.CancelledJobs{Count: some.Count, NextCursor: some.Cursor, Left: some.Left}, err
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
	record := who.Record(action, id)
	record.Reason = name
	return audit.Append(tx, record)
}

func (l *Local) enqueueJob(ctx context.Context, who keystore.Authority, args admin.EnqueueJob) (enqueued jobs.Enqueued, err error) {
	if who.Schema == nil {
		return enqueued, fault.New(fault.NotReady, "no release is active")
	}
	request := jobs.Request{Name: args.Name, Params: args.Params, Key: args.Key, RequestID: who.RequestID}
	if request.Delay, err = admin.DurationOf("delay", args.Delay); err != nil {
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
