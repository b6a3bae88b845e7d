package runtime

// MemoryUse has limits of memory in bytes, and what is in use.
type MemoryUse struct {
	// HandlersLimit is the limit of all handlers together, Handlers what they use.
	HandlersLimit, Handlers int64
	// BodiesLimit is the limit of large bodies, AnswersLimit that of answers that wait for
	// slow clients.
	BodiesLimit, AnswersLimit int64
}

// MemoryUse returns the limits of memory in force. It may be called by any goroutine.
func (r *Runtime) MemoryUse() MemoryUse {
	limit, used := r.engine.Memory()
	return MemoryUse{HandlersLimit: limit, Handlers: used, BodiesLimit: r.opt.Front.MaxBodyMemory, AnswersLimit: r.opt.Front.MaxAnswerMemory}
}
