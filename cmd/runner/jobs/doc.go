// Package jobs has the commands of runner jobs.
package jobs
