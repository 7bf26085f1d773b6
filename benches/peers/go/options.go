package main

import (
	"flag"
	"fmt"
	"time"
)

// options is what the command line asks for; every peer program takes the same.
type options struct {
	peer, redis, name string
	workers           int
	hold, pause       time.Duration
	startAt           time.Time
	seconds           int
	check             bool
}

func parseOptions() (options, error) {
	var o options
	flag.StringVar(&o.peer, "peer", "", "which lock")
	flag.StringVar(&o.redis, "redis", "", "URL of the server")
	flag.StringVar(&o.name, "name", "", "name of the lock")
	flag.IntVar(&o.workers, "workers", 1, "workers of this process")
	holdMicros := flag.Int64("hold-us", 0, "how long to hold the lock")
	pauseMillis := flag.Int64("pause-ms", 0, "pause after each release")
	warmup := flag.Int64("warmup-s", 2, "seconds before the window, unless its start is given")
	flag.IntVar(&o.seconds, "seconds", 1, "length of the window")
	flag.Int("process-index", 0, "number of this process among its peers")
	startAtMillis := flag.Int64("start-at-unix-ms", 0, "start of the window")
	flag.BoolVar(&o.check, "check", false, "count sections in Redis without atomicity")
	flag.Parse()
	o.hold = time.Duration(*holdMicros) * time.Microsecond
	o.pause = time.Duration(*pauseMillis) * time.Millisecond
	o.startAt = time.UnixMilli(*startAtMillis)
	if *startAtMillis == 0 {
		o.startAt = time.Now().Add(time.Duration(*warmup) * time.Second)
	}
	if o.peer == "" || o.redis == "" || o.name == "" || flag.NArg() > 0 {
		return o, fmt.Errorf("need --peer, --redis and --name, and nothing but flags")
	}
	return o, nil
}
