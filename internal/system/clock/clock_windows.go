package clock

import (
	"time"

	"golang.org/x/sys/windows"
)

func uptime() (time.Duration, bool) { return windows.DurationSinceBoot(), true } // GetTickCount64

func boot() string { return "" }

func synchronized() bool { return false }
