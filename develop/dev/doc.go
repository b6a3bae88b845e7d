// Package dev is the development server: it builds an app, serves it, and does so again after each
// save. Its log shows each request with the lines of its handler.
package dev
