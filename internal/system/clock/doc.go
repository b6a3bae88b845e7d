// Package clock asks the system about its clocks, beyond what package time does.
package clock
