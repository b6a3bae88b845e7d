// Package telemetry is the one way out for logs, and nothing secret takes it.
//
// Every line is searched as it is about to leave, after all formatting:
// tokens, JWTs, bearer credentials and the values of authorization and cookie
// headers become "…", wherever in the line they stand, and so do the values that
// a Redactor knows. That is the last net, not the first: who has a secret keeps
// it in a type that prints as "…" and does not log it.
//
// Lines are written whole, one write for each, or by a Queue several at once when
// their reader is slow. Loggers, Redactors and Queues may be used by any number of
// goroutines.
package telemetry
