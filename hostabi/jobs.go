package hostabi

import (
	"strings"
	"time"

	"runner.example/internal/fault"
	"runner.example/state/jobs"
)

// enqueueJob writes a job of the caller into the request's transaction.
func enqueueJob(c *Call, args *arguments) (any, error) {
	now := c.Host.Keystore.Now()
	request := jobs.Request{Name: args.text("name"), Params: args.optionalObject("params"), RequestID: c.Request.ID}
	request.Delay = args.optionalTime("delay", 0, 0, jobs.MaxDelay)
	request.Key, _ = args.optionalText("key")
	args.notNull("at")
	if at, ok := args.optionalText("at"); ok {
		var err error
		if request.At, err = jobs.ParseAt(at); err != nil {
			args.wrong("member %q %s", "at", strings.TrimPrefix(fault.Of(err).Detail, "at "))
		} else if request.At.Sub(now) > jobs.MaxDelay {
			args.wrong("member %q must be at most %d days from now", "at", jobs.MaxDelay/(24*time.Hour))
		}
	}
	if err := args.end(); err != nil {
		return nil, err
	}
	if c.Host.Jobs != nil {
		request.Full = c.Host.Jobs.Full(&c.Caller, request.Name)
	}
	return jobs.Enqueue(c.Tx, c.Host.Schema, &c.Caller, request, now, &c.work)
}

// cancelJob ends a job of the caller's tenant. A job cannot cancel itself: it would not be committed.
func cancelJob(c *Call, args *arguments) (any, error) {
	id := args.text("id")
	if err := args.end(); err != nil {
		return nil, err
	}
	if c.Request.Job != nil && c.Request.Job.ID == id {
		return nil, fault.New(fault.Conflict, "the job cannot cancel itself: end its run instead")
	}
	cancelled, err := jobs.Cancel(c.Tx, &c.Caller, id, c.Host.Keystore.Now(), c.Host.KeepJobs)
	return struct {
		Cancelled bool `json:"cancelled"`
	}{cancelled}, err
}
