package main

// A job and its answer: see benches/beside/src/job.rs.
type job struct {
	Job         string
	Queue       string
	Count       int
	Size        int
	Concurrency int
	Handler     string
	Delay       [2]int64
	PerSecond   float64 `json:"per_second"`
}

type reply struct {
	Count   int     `json:"count"`
	Seconds float64 `json:"seconds"`
	Late    []int64 `json:"late,omitempty"`
	Error   string  `json:"error,omitempty"`
}
