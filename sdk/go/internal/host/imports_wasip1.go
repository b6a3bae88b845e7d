// Code generated from hostabi/abi by go generate; DO NOT EDIT.

//go:build wasip1

package host

import "unsafe"

//go:wasmimport runner request_method
func requestMethod(buf unsafe.Pointer, capacity uint32) int32

//go:wasmimport runner request_path
func requestPath(buf unsafe.Pointer, capacity uint32) int32

//go:wasmimport runner request_param
func requestParam(name string, buf unsafe.Pointer, capacity uint32) int32

//go:wasmimport runner request_query
func requestQuery(name string, buf unsafe.Pointer, capacity uint32) int32

//go:wasmimport runner request_header
func requestHeader(name string, buf unsafe.Pointer, capacity uint32) int32

//go:wasmimport runner request_pairs
func requestPairs(kind uint32, buf unsafe.Pointer, capacity uint32) int32

//go:wasmimport runner request_body
func requestBody(offset uint32, buf unsafe.Pointer, capacity uint32) int32

//go:wasmimport runner request_read
func requestRead(buf unsafe.Pointer, capacity uint32) int32

//go:wasmimport runner context
func context(buf unsafe.Pointer, capacity uint32) int32

//go:wasmimport runner response_header
func responseHeader(name string, value string) int32

//go:wasmimport runner response_send
func responseSend(status uint32, body unsafe.Pointer, length uint32) int32

//go:wasmimport runner response_error
func responseError(status uint32, code string, message string) int32

//go:wasmimport runner response_send_result
func responseSendResult(status uint32, part uint32) int32

//go:wasmimport runner response_begin
func responseBegin(status uint32) int32

//go:wasmimport runner response_write
func responseWrite(body unsafe.Pointer, length uint32) int32

//go:wasmimport runner call
func call(op string, args unsafe.Pointer, length uint32) int32

//go:wasmimport runner call_result
func callResult(offset uint32, buf unsafe.Pointer, capacity uint32) int32

//go:wasmimport runner call_start
func callStart(op string, args unsafe.Pointer, length uint32) int32

//go:wasmimport runner call_wait
func callWait() int32

//go:wasmimport runner call_take
func callTake(ticket uint32) int32

//go:wasmimport runner request_next
func requestNext(handlers string) int32

//go:wasmimport runner keep_writes
func keepWrites()

//go:wasmimport runner log
func log(level uint32, text string)
