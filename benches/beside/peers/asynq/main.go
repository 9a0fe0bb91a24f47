// Runs the jobs of benches/beside with asynq: one JSON object on each line, and an answer to each. It ends when its input
// ends. benches/beside/src/job.rs describes the jobs.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	"github.com/hibiken/asynq"
)

func main() {
	options, err := asynq.ParseRedisURI(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	peer := &peer{redis: options, client: asynq.NewClient(options)}
	answers := json.NewEncoder(os.Stdout)
	answers.Encode(reply{})
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var wanted job
		err := json.Unmarshal(lines.Bytes(), &wanted)
		var answer reply
		if err == nil {
			answer, err = peer.run(wanted)
		}
		if err != nil {
			answer = reply{Error: err.Error()}
		}
		answers.Encode(answer)
	}
}
