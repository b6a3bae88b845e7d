// Package nodes has the commands of runner cluster.
package nodes
