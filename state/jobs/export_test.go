package jobs

// OnlyConflicts decides whether a claim that failed is logged as an error.
var OnlyConflicts = onlyConflicts
