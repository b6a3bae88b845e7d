// Package cpuqueue schedules long computations of handlers on a limited number of CPU slots.
//
// A task is one computation, such as the run of a guest. Short tasks never enter the
// queue. A task that computes for longer takes a CPU slot, and is asked from time to time
// to yield it. There are fewer slots than processors, so a short request finds a
// processor free.
//
// Handlers share the slots evenly, however many tasks each of them has, and so do callers,
// however many handlers they call: a task whose handler and caller have both used little time is
// next. Within a handler the oldest task goes first and keeps its slot until it is done: if
// all tasks shared the slots under overload, all of them would be late and none would be done.
// There is one exception: a task that takes much longer than its handler's tasks usually do
// counts as having come later. So do all tasks of a caller if together they take that much longer.
// The queue learns what is usual.
//
//	handler A   ▣ ▢ ▢ ▢      ▣ has a slot
//	handler B   ▢            ▢ waits: B is next when A has used more than B
//
// A task that cannot be done by its deadline is refused (ErrFull).
//
// The package measures nothing itself: its clock is passed in. It starts no goroutine.
package cpuqueue
