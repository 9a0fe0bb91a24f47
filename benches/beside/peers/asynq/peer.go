package main

import (
	"fmt"
	"time"

	"github.com/hibiken/asynq"
)

type peer struct {
	redis   asynq.RedisConnOpt
	client  *asynq.Client
	working *working
}

func (p *peer) run(wanted job) (reply, error) {
	switch wanted.Job {
	case "fill":
		return p.fill(wanted)
	case "offer":
		return p.offer(wanted)
	case "receive":
		return p.receive(wanted)
	case "work":
		var err error
		p.working, err = start(p.redis, wanted)
		return reply{}, err
	case "collected":
		return reply{Count: int(p.working.count.Load())}, nil
	case "stop":
		return p.working.stop(), nil
	case "close":
		return reply{}, nil
	default:
		return reply{}, fmt.Errorf("no such job: %s", wanted.Job)
	}
}

// Receives and acknowledges messages that are ready. The time begins with the start of the server, and ends with the return
// of the last handler.
func (p *peer) receive(wanted job) (reply, error) {
	begun := time.Now()
	wanted.Handler = "done"
	working, err := start(p.redis, wanted)
	if err != nil {
		return reply{}, err
	}
	<-working.all
	seconds := time.Since(begun).Seconds()
	working.stop()
	return reply{Count: wanted.Count, Seconds: seconds}, nil
}
