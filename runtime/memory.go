package runtime

// MemoryUse has memory limits and the memory in use, in bytes.
type MemoryUse struct {
	// HandlersLimit is the limit of all handlers together, Handlers what they use.
	HandlersLimit, Handlers int64
	// BodiesLimit is the limit of large bodies, AnswersLimit that of answers that wait for
	// slow clients.
	BodiesLimit, AnswersLimit int64
}

// MemoryUse returns the memory limits in force and the memory in use. It may be called by
// any goroutine.
func (r *Runtime) MemoryUse() MemoryUse {
	limit, used := r.engine.Memory()
	return MemoryUse{HandlersLimit: limit, Handlers: used, BodiesLimit: r.opt.Front.MaxBodyMemory, AnswersLimit: r.opt.Front.MaxAnswerMemory}
}
