package schema

import (
	"time"

	"runner.example/internal/diag"
)

// Job is a job with its effective settings.
type Job struct {
	// Name is also the name of the handler.
	Name string
	// Params are in order of declaration.
	Params []*Field
	// As is the scope under whose grants the job acts; empty: with the authority of the caller
	// that enqueued it.
	As string
	// Retries is how often a job that failed runs again.
	Retries int
	// Backoff is the time before the first retry; it doubles with each further one.
	Backoff time.Duration
	// Timeout limits one run; zero: the server's.
	Timeout time.Duration
	// Concurrency limits how many of the jobs run at once; nil: no limit.
	Concurrency *Concurrency
	// Schedule is nil for a job that only the app enqueues.
	Schedule *Schedule
	Doc      string
	Span     diag.Span
}

// Concurrency is how many jobs may run at once in the whole cluster.
type Concurrency struct {
	Max int
	// By is "" for all jobs of the name, "tenant" or "user" for those of each tenant or user, or
	// a parameter: for those of each tenant with the same value.
	By string
}

// Schedule is when a job is enqueued by itself.
type Schedule struct {
	// Cron is a valid expression of five fields, or a word such as "@daily".
	Cron string
	// Zone is the name of a time zone: "UTC" unless declared.
	Zone string
}

// The settings of a job that does not declare them.
const (
	DefaultRetries = 8
	DefaultBackoff = 10 * time.Second
	// MaxBackoff limits the time between two runs of a job.
	MaxBackoff = time.Hour
)

// jobPrefix is the prefix of the paths that handlers of jobs see. No request has such a path.
const jobPrefix = "/_job/"

// Route is the route that the handler of a job sees.
func (j *Job) Route() *Route {
	return &Route{
		Method: "POST", Path: jobPrefix + j.Name, Handler: j.Name, Timeout: j.Timeout, As: j.As, Doc: j.Doc, Span: j.Span,
	}
}

// Input is the type of the parameters: an object.
func (j *Job) Input() *ObjectType {
	return &ObjectType{Name: j.Name, Fields: j.Params, Span: j.Span}
}

// Job returns the job of that name, or nil.
func (s *Schema) Job(name string) *Job {
	for i := range s.Jobs {
		if s.Jobs[i].Name == name {
			return &s.Jobs[i]
		}
	}
	return nil
}
