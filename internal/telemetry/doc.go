// Package telemetry writes the log, without secrets, and has the registry of metrics, which other
// packages count.
//
// Every line is searched just before it is written, after all formatting: tokens, JWTs,
// bearer credentials and the values of authorization and cookie headers become "…" at any
// place in the line, and so do the values that a Redactor knows. This is the second line of
// defence: code that has a secret keeps it in a type that prints as "…", and does not log
// it.
//
// Each line is one write; a Queue writes several lines at once if their reader is slow.
// Loggers, Redactors and Queues are safe for concurrent use.
package telemetry
