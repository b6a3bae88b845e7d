// The handlers of the orders app: one exported function for each name in
// orders.schema.
package main

import runner "runner.example/sdk/go"

func main() {}

//go:wasmexport hello
func exportHello() { runner.Handle(hello) }

//go:wasmexport ping
func exportPing() { runner.Handle(ping) }

//go:wasmexport myProfile
func exportMyProfile() { runner.Handle(myProfile) }

//go:wasmexport listOrders
func exportListOrders() { runner.Handle(listOrders) }

//go:wasmexport getOrder
func exportGetOrder() { runner.Handle(getOrder) }

//go:wasmexport createOrder
func exportCreateOrder() { runner.Handle(createOrder) }

//go:wasmexport listKeys
func exportListKeys() { runner.Handle(listKeys) }

//go:wasmexport createKey
func exportCreateKey() { runner.Handle(createKey) }

//go:wasmexport rotateKey
func exportRotateKey() { runner.Handle(rotateKey) }

//go:wasmexport revokeKey
func exportRevokeKey() { runner.Handle(revokeKey) }

//go:wasmexport paymentsWebhook
func exportPaymentsWebhook() { runner.Handle(paymentsWebhook) }
