// Command peers runs redsync or rueidislock on one contended name.
package main

import (
	"context"
	"log"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

const mostDrain = 5 * time.Second

func main() {
	log.SetFlags(0)
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

func run() error {
	o, err := parseOptions()
	if err != nil {
		return err
	}
	workers, err := newWorkers(o)
	if err != nil {
		return err
	}
	w := workers[0].window
	done := start(workers)
	time.Sleep(time.Until(w.start))
	before := cpuUsed()
	time.Sleep(time.Until(w.end))
	used := cpuUsed() - before
	stuck := drain(done, len(workers))
	return printReport(o, workers, used, stuck)
}

func newWorkers(o options) ([]*worker, error) {
	newLock, err := newLocks(o)
	if err != nil {
		return nil, err
	}
	config, err := redis.ParseURL(o.redis)
	if err != nil {
		return nil, err
	}
	counter := redis.NewClient(config)
	window, err := newWindow(o)
	if err != nil {
		return nil, err
	}
	workers := make([]*worker, max(1, o.workers))
	for index := range workers {
		workers[index] = &worker{options: o, window: window, lock: newLock(), counter: counter}
	}
	return workers, nil
}

func start(workers []*worker) <-chan struct{} {
	done := make(chan struct{}, len(workers))
	for _, w := range workers {
		go func() {
			if err := w.run(context.Background()); err != nil {
				log.Fatal(err)
			}
			done <- struct{}{}
		}()
	}
	return done
}

// drain answers how many still wait for a lock that nobody wants to keep any more.
func drain(done <-chan struct{}, workers int) (stuck int) {
	late := time.After(mostDrain)
	for ended := range workers {
		select {
		case <-done:
		case <-late:
			return workers - ended
		}
	}
	return 0
}

func cpuUsed() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		log.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
