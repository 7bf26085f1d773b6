package main

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

// worker takes the contended lock again and again until the window is over.
type worker struct {
	options  options
	window   window
	lock     lock
	counter  *redis.Client
	acquired int
	held     time.Duration
	sections int
	waits    []time.Duration
	instants []time.Time
}

func (w *worker) run(ctx context.Context) error {
	for !w.window.isOver() {
		if err := w.turn(ctx); err != nil {
			return err
		}
		if w.options.pause > 0 {
			time.Sleep(w.options.pause)
		}
	}
	return nil
}

func (w *worker) turn(ctx context.Context) error {
	asked := time.Now()
	release, err := w.lock(ctx)
	if err != nil {
		return err
	}
	got := time.Now()
	// Who gets the lock after the end lets the others out at once.
	if !w.window.isOver() {
		err = w.section(ctx)
	}
	held := time.Since(got)
	if err := errors.Join(err, release()); err != nil {
		return err
	}
	if w.window.contains(got) {
		w.count(got, got.Sub(asked), held)
	}
	return nil
}

func (w *worker) section(ctx context.Context) error {
	if w.options.hold > 0 {
		time.Sleep(w.options.hold)
	}
	if !w.options.check {
		return nil
	}
	key := w.options.name + ":check"
	before, err := w.counter.Get(ctx, key).Int()
	if err != nil && !errors.Is(err, redis.Nil) {
		return err
	}
	w.sections++
	return w.counter.Set(ctx, key, before+1, 0).Err()
}

func (w *worker) count(got time.Time, waited, held time.Duration) {
	w.acquired++
	w.held += held
	w.waits = append(w.waits, waited)
	w.instants = append(w.instants, got)
}
