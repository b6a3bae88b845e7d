package hostabi

import (
	"runner.example/internal/fault"
	"runner.example/state/entity"
)

// operationState is the state of a run's operations on rows, keys and other services.
type operationState struct {
	rows        entity.Access
	rowsReady   bool           // rows is set up for this run
	readsClock  bool           // the guest has read the time, or what depends on it
	outdated    bool           // the schema of the rows has changed meanwhile
	sent        []string       // outbound requests that runs for this request have sent
	contextText []byte         // the JSON of the function context, made at its first call
	result      entity.Result  // of the last operation
	called      bool           // there was an operation
	succeeded   bool           // the last one did not fail
	unread      int            // bytes of the last one's error that the guest may read at no cost
	refused     bool           // the result says which budget of calls is spent
	lastError   operationError // of the last one that failed
	blamed      operationError // the one that the answer to a failure of the handler is about
	blamedAs    fault.Code     // the code of that answer; empty: there is none
	pending     *pendingOperations
	streams     streams // that are compressed or decompressed
}

// reset prepares for a run, which may be the first one for a request.
func (o *operationState) reset(firstRun bool) {
	o.readsClock, o.rowsReady, o.outdated, o.called, o.succeeded, o.refused, o.unread = false, false, false, false, false, false, 0
	o.lastError, o.blamed, o.blamedAs = operationError{}, operationError{}, ""
	if firstRun {
		o.sent = o.sent[:0]
	}
	o.contextText, o.result = o.contextText[:0], entity.Result{JSON: o.result.JSON[:0]}
	if cap(o.result.JSON) > keptResultBytes {
		o.result.JSON = nil
	}
}
