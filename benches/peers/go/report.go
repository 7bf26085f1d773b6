package main

import (
	"encoding/json"
	"log"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

const mostWaits = 20_000

// report is the one line that a peer program prints.
type report struct {
	Peer       string    `json:"peer"`
	Acquired   []int     `json:"acquired"`
	HoldMicros float64   `json:"hold_us_mean"`
	CPUMicros  int64     `json:"cpu_us"`
	Stuck      int       `json:"stuck"`
	Sections   *int      `json:"sections,omitempty"`
	Instants   [][]int64 `json:"acquired_at_ns"`
	Waits      []int64   `json:"waits_us"`
}

func printReport(o options, workers []*worker, cpu time.Duration, stuck int) error {
	r := report{Peer: o.peer, CPUMicros: cpu.Microseconds(), Stuck: stuck}
	var held time.Duration
	var sections, all int
	var waits []time.Duration
	for _, w := range workers {
		r.Acquired = append(r.Acquired, w.acquired)
		all += w.acquired
		held += w.held
		sections += w.sections
		waits = append(waits, w.waits...)
		r.Instants = append(r.Instants, distances(w.instants))
	}
	if all > 0 {
		r.HoldMicros = float64(held.Microseconds()) / float64(all)
	}
	if o.check {
		r.Sections = &sections
	}
	r.Waits = sample(waits)
	return json.NewEncoder(os.Stdout).Encode(r)
}

// distances has the first instant in the system's monotonic clock, which all processes share, then the
// distance of each from the one before.
func distances(instants []time.Time) []int64 {
	found := make([]int64, len(instants))
	for index, instant := range instants {
		if index == 0 {
			found[0] = monotonicNow() - time.Since(instant).Nanoseconds()
		} else {
			found[index] = instant.Sub(instants[index-1]).Nanoseconds()
		}
	}
	return found
}

func monotonicNow() int64 {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		log.Fatal(err)
	}
	return now.Nano()
}

// sample is evenly spaced out of all waits in order, so that percentiles survive.
func sample(waits []time.Duration) []int64 {
	slices.Sort(waits)
	kept := min(len(waits), mostWaits)
	sampled := make([]int64, kept)
	for index := range sampled {
		sampled[index] = waits[(2*index+1)*len(waits)/(2*kept)].Microseconds()
	}
	return sampled
}
