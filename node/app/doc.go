// Package app is the app directory: its configuration, schema and modules, and where its data
// is. Commands, the server and the development server use it.
package app
