// The handlers of the inbox app: one exported function for each name in
// inbox.schema.
package main

import runner "runner.example/sdk/go"

func main() {}

// The first run prepares encoders; runner_warm does this before the first request.
//
//go:wasmexport runner_warm
func exportWarm() {
	runner.Warm(hello)
	runner.Warm(listEvents)
	runner.Warm(receiveEvent)
}

//go:wasmexport hello
func exportHello() { runner.Handle(hello) }

//go:wasmexport listEvents
func exportListEvents() { runner.Handle(listEvents) }

//go:wasmexport getEvent
func exportGetEvent() { runner.Handle(getEvent) }

//go:wasmexport receiveEvent
func exportReceiveEvent() { runner.Handle(receiveEvent) }
