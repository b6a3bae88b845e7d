// Package assemblyscript holds the SDK for handlers written in AssemblyScript,
// which is the npm package @runner/assemblyscript to them: its sources and the
// transform that makes exports of handlers.
//
// It is Go only so far that it can be embedded, to be laid beside an app.
package assemblyscript
