package main

import (
	"bytes"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hibiken/asynq"
)

// Calls in flight, unless the job says how many.
const concurrency = 32

// Puts messages that are ready.
func (p *peer) fill(wanted job) (reply, error) {
	body := []byte(strings.Repeat("x", wanted.Size))
	wanted.Concurrency = concurrency
	return p.enqueue(wanted, func(int) error {
		_, err := p.client.Enqueue(asynq.NewTask("message", body), asynq.Queue(wanted.Queue))
		return err
	})
}

// Offers delayed messages: at a rate, or as fast as possible. Several queues take turns. A payload begins with the time at
// which it is due. asynq has no call for a batch.
func (p *peer) offer(wanted job) (reply, error) {
	begun, names := time.Now(), wanted.names()
	if wanted.PerSecond > 0 {
		wanted.Concurrency = concurrency
	}
	return p.enqueue(wanted, func(number int) error {
		if wanted.PerSecond > 0 {
			time.Sleep(time.Until(begun.Add(time.Duration(float64(number) / wanted.PerSecond * float64(time.Second)))))
		}
		delay := time.Duration(wanted.Delay[0]+rand.Int64N(wanted.Delay[1]-wanted.Delay[0]+1)) * time.Millisecond
		body := payload(time.Now().Add(delay).UnixMicro(), wanted.Size)
		_, err := p.client.Enqueue(asynq.NewTask("message", body), asynq.Queue(names[number%len(names)]), asynq.ProcessIn(delay))
		return err
	})
}

// Makes each of the calls once, in order, until the time of the job is over, if it has one and no rate.
func (p *peer) enqueue(wanted job, call func(number int) error) (reply, error) {
	begun := time.Now()
	numbers, failed := make(chan int), make(chan error, wanted.Concurrency)
	var all sync.WaitGroup
	for range wanted.Concurrency {
		all.Add(1)
		go func() {
			defer all.Done()
			var first error
			for number := range numbers {
				if err := call(number); first == nil {
					first = err
				}
			}
			if first != nil {
				failed <- first
			}
		}()
	}
	end := begun.Add(time.Duration(wanted.Millis) * time.Millisecond)
	limited := wanted.Millis > 0 && wanted.PerSecond == 0
	sent := 0
	for sent < wanted.Count && !(limited && time.Now().After(end)) {
		numbers <- sent
		sent++
	}
	close(numbers)
	all.Wait()
	select {
	case err := <-failed:
		return reply{}, err
	default:
		return reply{Count: sent, Seconds: time.Since(begun).Seconds()}, nil
	}
}

// The due time in epoch µs, filled up with `x` to the size.
func payload(due int64, size int) []byte {
	text := strconv.FormatInt(due, 10) + " "
	return []byte(text + strings.Repeat("x", max(0, size-len(text))))
}

func due(payload []byte) int64 {
	text, _, _ := bytes.Cut(payload, []byte(" "))
	due, _ := strconv.ParseInt(string(text), 10, 64)
	return due
}
