package main

import "fmt"

// A job and its answer: see benches/beside/src/job.rs.
type job struct {
	Job         string
	Queue       string
	Queues      int
	Count       int
	Millis      int
	Size        int
	Concurrency int
	Handler     string
	Delay       [2]int64
	PerSecond   float64 `json:"per_second"`
}

// The queues that the name in a job stands for.
func (j job) names() []string {
	if j.Queues <= 1 {
		return []string{j.Queue}
	}
	names := make([]string, j.Queues)
	for number := range names {
		names[number] = fmt.Sprintf("%s-%d", j.Queue, number)
	}
	return names
}

type reply struct {
	Count   int     `json:"count"`
	Seconds float64 `json:"seconds"`
	Late    []int64 `json:"late,omitempty"`
	Error   string  `json:"error,omitempty"`
}
