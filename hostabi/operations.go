package hostabi

import (
	"runner.example/entity"
)

// operations is the state of a run's operations on rows, keys and other services.
type operations struct {
	rows        entity.Access
	reachesRows bool          // rows is for this run
	outdated    bool          // the schema of the rows has changed meanwhile
	sent        bool          // a run for this request has sent an outbound request
	contextText []byte        // the JSON of the function context, once it was read
	result      entity.Result // of the last operation
	called      bool          // there was one
	succeeded   bool          // it did not fail
	pending     *pendingOperations
}

// reset prepares for a run, which may be the first one for a request.
func (o *operations) reset(firstRun bool) {
	o.reachesRows, o.outdated, o.called, o.succeeded = false, false, false, false
	o.sent = o.sent && !firstRun
	o.contextText, o.result = o.contextText[:0], entity.Result{JSON: o.result.JSON[:0]}
	if cap(o.result.JSON) > keptResultBytes {
		o.result.JSON = nil
	}
}
