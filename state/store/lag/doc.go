// Package lag computes how far a store lags behind the log that it shares, from when it asked the
// log for its newest entry.
package lag
