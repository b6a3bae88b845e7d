//go:build !linux

package process

const forServers = false
