package process

// YieldToOthers lowers the priority of this process and of all its threads: it computes when others do not. An
// error is ignored: the process does the same, at the cost of others.
func YieldToOthers() { yieldToOthers() }
