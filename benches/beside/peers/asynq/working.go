package main

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hibiken/asynq"
)

var errFirst = errors.New("the first attempt fails")

// A server whose handler counts.
type working struct {
	server *asynq.Server
	count  atomic.Int64
	// Closed when as many messages are handled as the job says.
	all  chan struct{}
	over chan struct{}
	mu   sync.Mutex
	late []int64
}

// Starts a server with asynq's defaults, but for the concurrency, and for retries: a message that failed is due again after a
// millisecond. Nothing of a message is retained, which is asynq's default.
func start(redis asynq.RedisConnOpt, wanted job) (*working, error) {
	working := &working{all: make(chan struct{}), over: make(chan struct{})}
	queues := make(map[string]int)
	for _, name := range wanted.names() {
		queues[name] = 1
	}
	working.server = asynq.NewServer(redis, asynq.Config{
		Concurrency:     wanted.Concurrency,
		Queues:          queues,
		RetryDelayFunc:  func(int, error, *asynq.Task) time.Duration { return time.Millisecond },
		LogLevel:        asynq.FatalLevel,
		ShutdownTimeout: time.Second,
	})
	return working, working.server.Start(asynq.HandlerFunc(func(ctx context.Context, task *asynq.Task) error {
		return working.handle(ctx, task, wanted)
	}))
}

func (w *working) handle(ctx context.Context, task *asynq.Task, wanted job) error {
	switch wanted.Handler {
	case "late":
		by := time.Now().UnixMicro() - due(task.Payload())
		w.mu.Lock()
		w.late = append(w.late, by)
		w.mu.Unlock()
	case "fail_once":
		if retried, _ := asynq.GetRetryCount(ctx); retried == 0 {
			return errFirst
		}
	case "hold":
		w.count.Add(1)
		<-w.over
		return errFirst
	}
	if w.count.Add(1) == int64(wanted.Count) {
		close(w.all)
	}
	return nil
}

func (w *working) stop() reply {
	close(w.over)
	w.server.Shutdown()
	return reply{Count: int(w.count.Load()), Late: w.late}
}
