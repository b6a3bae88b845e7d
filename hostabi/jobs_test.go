package hostabi_test

import (
	"testing"

	"runner.example/hostabi"
	"runner.example/hostabi/abi"
)

// The end of a job's run is in the transaction of the run, which a cancellation would refuse.
func TestAJobCannotCancelItself(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	g.call.Request.Job = &abi.Job{ID: "job_1", Attempt: 1}
	for id, want := range map[string]int32{"job_1": conflict, "job_2": notFound} {
		if n := g.do("call", "jobs.cancel", `{"id":"`+id+`"}`); n != want {
			t.Errorf("the job job_1 cancels %s: %d, want %d", id, n, want)
		}
	}
	g.call.Request.Job = nil // a request may cancel a job; this one does not exist
	if n := g.do("call", "jobs.cancel", `{"id":"job_1"}`); n != notFound {
		t.Errorf("a request cancels job_1: %d, want %d", n, notFound)
	}
}
