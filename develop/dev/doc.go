// Package dev is the development server: it builds an app, serves it, and does so again after each
// save. Its log shows each request with the lines of its handler.
//
// It is a server and a build loop in one process. The loop finds changed files, builds their sources, and activates the
// app. Watch is such a loop for other commands.
package dev
