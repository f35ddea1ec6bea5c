package main

import (
	"encoding/json"
	"fmt"
	"time"
)

// answer is the agent's answer about the pod (the contract: agent/rules/drain/ack.ts), or its refusal.
type answer struct {
	Result   string  `json:"result"`
	Evidence string  `json:"evidence"`
	Elapsed  float64 `json:"elapsedMs"`
	// Error is the code of a refusal (agent/round/hold/refusal.ts).
	Error string `json:"error"`
	Why   string `json:"why"`
	// proved is true for a 200. After a 503 the fallback runs: the agent has no evidence.
	proved bool
}

func (a answer) String() string {
	held := time.Duration(a.Elapsed * float64(time.Millisecond))
	return fmt.Sprintf("%s, evidence %s, held for %s: %s", a.Result, a.Evidence, round(held), a.Why)
}

// ends is false for a pod that stays or opts out of drains. Its clients may still connect, so no quiet window follows.
func (a answer) ends() bool { return a.Result != "stays" }

// refusal is an answer that no retry changes, not even a call to another agent.
type refusal struct{ message string }

func (r refusal) Error() string { return r.message }

// understand returns an answer, or an error: a refusal, or a failure that a call to another replica may avoid.
func understand(status int, body []byte) (answer, error) {
	var said answer
	err := json.Unmarshal(body, &said)
	// A 503 with a result is an answer too: nothing is proved, and no other agent has more evidence.
	if err == nil && said.Result != "" && (status == 200 || status == 503) {
		said.proved = status == 200
		return said, nil
	}
	problem := fmt.Sprintf("%d, which is no answer of apisix-drain", status)
	if err == nil && said.Error != "" {
		problem = fmt.Sprintf("%d %s: %s", status, said.Error, said.Why)
	}
	if final(status) {
		return answer{}, refusal{"refused with " + problem}
	}
	return answer{}, fmt.Errorf("answered %s", problem)
}

// final reports whether every agent would give this status, so that no retry helps.
func final(status int) bool {
	switch status {
	case 408, 425, 429:
		return false
	}
	return status >= 300 && status < 500
}
