// The handlers of the inbox app: one exported function for each name in
// inbox.schema.
package main

import runner "runner.example/sdk/go"

func main() {}

//go:wasmexport hello
func exportHello() { runner.Handle(hello) }

//go:wasmexport listEvents
func exportListEvents() { runner.Handle(listEvents) }

//go:wasmexport getEvent
func exportGetEvent() { runner.Handle(getEvent) }

//go:wasmexport receiveEvent
func exportReceiveEvent() { runner.Handle(receiveEvent) }
