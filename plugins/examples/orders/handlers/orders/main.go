// The handlers of the orders app: one exported function for each name in
// orders.schema. Who may see and change what is the schema's word, enforced
// below these functions.
package main

import runner "runner.example/sdk/go"

func main() {}

// What the handlers prepare at their first run is prepared before the first
// request.
//
//go:wasmexport runner_warm
func exportWarm() {
	runner.Warm(hello)
	runner.Warm(listOrders)
	runner.Warm(createOrder, `{"number":"A-1","partner":"","total":"1.00"}`)
	runner.Warm(updateOrder, `{"status":"open"}`)
	runner.Warm(createKey, `{"scope":"orders_read","name":"warm","expiresIn":1}`)
	runner.Warm(paymentsWebhook)
}

//go:wasmexport hello
func exportHello() { runner.Handle(hello) }

//go:wasmexport listOrders
func exportListOrders() { runner.Handle(listOrders) }

//go:wasmexport getOrder
func exportGetOrder() { runner.Handle(getOrder) }

//go:wasmexport createOrder
func exportCreateOrder() { runner.Handle(createOrder) }

//go:wasmexport updateOrder
func exportUpdateOrder() { runner.Handle(updateOrder) }

//go:wasmexport deleteOrder
func exportDeleteOrder() { runner.Handle(deleteOrder) }

//go:wasmexport getPartner
func exportGetPartner() { runner.Handle(getPartner) }

//go:wasmexport createPartner
func exportCreatePartner() { runner.Handle(createPartner) }

//go:wasmexport paymentsWebhook
func exportPaymentsWebhook() { runner.Handle(paymentsWebhook) }

//go:wasmexport me
func exportMe() { runner.Handle(me) }

//go:wasmexport listKeys
func exportListKeys() { runner.Handle(listKeys) }

//go:wasmexport createKey
func exportCreateKey() { runner.Handle(createKey) }

//go:wasmexport rotateKey
func exportRotateKey() { runner.Handle(rotateKey) }

//go:wasmexport revokeKey
func exportRevokeKey() { runner.Handle(revokeKey) }
