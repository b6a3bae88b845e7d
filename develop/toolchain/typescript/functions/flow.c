// The state of AsyncLocalStorage. Only TypeScript modules that import node:async_hooks have these functions.
// sdk/typescript/src/node/async_hooks.ts keeps the state of the running call. While one is set, each callback of a
// promise is replaced by a function that restores the state. Code after await runs in such a callback.

#include "engine.h"

#define undefined value_of(kind_undefined, 0)
#define exception value_of(kind_exception, 0)

u32 engine(perform_promise_then)(u32 context, value promise, value *reactions, value *capability); // -1: an exception
u32 engine(JS_EnqueueJob)(u32 context, u32 job, u32 count, value *arguments);
u32 engine(JS_ExecutePendingJob)(u32 runtime, u32 *context);
void engine(JS_FreeValueRT)(u32 runtime, value v);
value engine(JS_NewCFunctionData)(u32 context, u32 function, u32 length, u32 magic, u32 count, value *data); // owns no data

// Functions of the glue. flow returns the address of a word that has the address of an object, whose first member is the
// state, or undefined. flow_entry returns the index of flow_call in the table of functions.
u32 engine(flow)(void);
u32 engine(flow_entry)(void);

#define always static inline __attribute__((always_inline))

always value *state(void) { return (value *)load32(load32(flow()) + object_values); }

always value wrapped(u32 context, value function) {
	value data[2];
	data[0] = function, data[1] = *state();
	return JS_NewCFunctionData(context, flow_entry(), 1, 0, 2, data);
}

// flow_call calls a function with its state.
value export(flow_call)(u32 context, value self, u32 count, value *arguments, u32 magic, value *data) {
	(void)magic;
	value before = *state();
	if (kind_of(data[1]) >= kind_first) add_reference(address_of(data[1]));
	*state() = data[1];
	value result = JS_Call(context, data[0], self, count, arguments);
	value after = *state();
	*state() = before;
	drop_value(context, after);
	return result;
}

// flow_then registers what a promise will call.
u32 export(flow_then)(u32 context, value promise, value *reactions, value *capability) {
	if (*state() == undefined) return perform_promise_then(context, promise, reactions, capability);
	value first = undefined, second = undefined;
	if (JS_IsFunction(context, reactions[0])) first = wrapped(context, reactions[0]);
	if (first != exception && JS_IsFunction(context, reactions[1])) second = wrapped(context, reactions[1]);
	u32 result = -1;
	if (first != exception && second != exception) {
		value own[2] = {first, second};
		result = perform_promise_then(context, promise, own, capability);
	}
	drop_value(context, first);
	drop_value(context, second);
	return result;
}

// flow_job adds a job. One with three arguments calls the method then of an object, which is the last of them.
u32 export(flow_job)(u32 context, u32 job, u32 count, value *arguments) {
	if (count != 3 || *state() == undefined) return JS_EnqueueJob(context, job, count, arguments);
	value own[3] = {arguments[0], arguments[1], wrapped(context, arguments[2])};
	if (own[2] == exception) return -1;
	u32 result = JS_EnqueueJob(context, job, 3, own);
	drop_value(context, own[2]);
	return result;
}

// flow_run runs a job. Each begins without a state.
u32 export(flow_run)(u32 runtime, u32 *context) {
	value before = *state();
	if (before != undefined) {
		*state() = undefined;
		JS_FreeValueRT(runtime, before);
	}
	return JS_ExecutePendingJob(runtime, context);
}
