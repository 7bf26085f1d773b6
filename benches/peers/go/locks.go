package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
)

// lock waits for the contended lock and answers how to release it.
type lock func(context.Context) (release func() error, err error)

// newLocks connects and answers what makes the lock of each worker.
func newLocks(o options) (func() lock, error) {
	switch o.peer {
	case "redsync":
		return redsyncLocks(o, redsync.WithRetryDelay(2*time.Millisecond), redsync.WithTries(math.MaxInt))
	case "redsync-default":
		return redsyncLocks(o)
	case "rueidislock":
		return rueidisLocks(o)
	default:
		return nil, fmt.Errorf("unknown peer %q", o.peer)
	}
}

func redsyncLocks(o options, settings ...redsync.Option) (func() lock, error) {
	config, err := redis.ParseURL(o.redis)
	if err != nil {
		return nil, err
	}
	locks := redsync.New(goredis.NewPool(redis.NewClient(config)))
	return func() lock {
		mutex := locks.NewMutex(o.name, settings...)
		return func(ctx context.Context) (func() error, error) {
			return func() error { return redsyncRelease(ctx, mutex) }, redsyncAcquire(ctx, mutex)
		}
	}, nil
}

// redsyncAcquire goes on when the library's own limit of tries ends a wait: the worker still wants the lock.
func redsyncAcquire(ctx context.Context, mutex *redsync.Mutex) error {
	for {
		err := mutex.LockContext(ctx)
		var taken *redsync.ErrTaken
		if !errors.Is(err, redsync.ErrFailed) && !errors.As(err, &taken) {
			return err
		}
	}
}

func redsyncRelease(ctx context.Context, mutex *redsync.Mutex) error {
	released, err := mutex.UnlockContext(ctx)
	if err == nil && !released {
		err = errors.New("the lock was lost before its release")
	}
	return err
}

func rueidisLocks(o options) (func() lock, error) {
	config, err := rueidis.ParseURL(o.redis)
	if err != nil {
		return nil, err
	}
	locker, err := rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption: config,
		// One key suits one server. NoLoopTracking stays off: with it, hand-overs inside a process nearly stop.
		KeyMajority: 1,
	})
	if err != nil {
		return nil, err
	}
	return func() lock {
		return func(ctx context.Context) (func() error, error) {
			_, cancel, err := locker.WithContext(ctx, o.name)
			return func() error { cancel(); return nil }, err
		}
	}, nil
}
