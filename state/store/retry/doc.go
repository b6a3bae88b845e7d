// Package retry orders the retries of transactions that conflict, so that one after the other
// commits. It decides nothing: without it the transactions would only retry more often.
package retry
