package main

import (
	"fmt"
	"time"
)

// window is the measuring window, in the monotonic clock of this process.
type window struct{ start, end time.Time }

func newWindow(o options) (window, error) {
	ahead := time.Until(o.startAt)
	if ahead < 0 {
		return window{}, fmt.Errorf("ready %v after the window's start", -ahead)
	}
	start := time.Now().Add(ahead)
	return window{start, start.Add(time.Duration(o.seconds) * time.Second)}, nil
}

func (w window) contains(instant time.Time) bool {
	return !instant.Before(w.start) && instant.Before(w.end)
}

func (w window) isOver() bool {
	return !time.Now().Before(w.end)
}
