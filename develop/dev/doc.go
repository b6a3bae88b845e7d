// Package dev is the development server: it builds an app, serves it, and does so again after each
// save. Its log shows each request with the lines of its handler.
//
// It is a server and a loop in one process: the loop compares files with the last comparison, builds the
// sources that changed, and activates the app. Watch is such a loop for other commands.
package dev
