// Package live computes values again when something that they were computed from changes, and hands the newest ones to
// those who watch them. It knows neither HTTP nor handlers: its owner runs a query and says what the run has read.
package live
