// Package live runs queries again when something that they have read changes, and offers the newest value of each to the
// listeners that subscribe to it. It knows neither HTTP nor handlers: its owner runs a query and says what the run has read.
package live
