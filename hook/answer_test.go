package main

import (
	"errors"
	"testing"
)

func TestUnderstand(t *testing.T) {
	const drained = `{"result":"drained","evidence":"barrier","elapsedMs":12.5,"why":"sealed"}`
	for name, test := range map[string]struct {
		status          int
		body            string
		proved, refused bool
		want            string
	}{
		"drained":         {200, drained, true, false, "drained, evidence barrier, held for 13ms: sealed"},
		"nothing proved":  {503, `{"result":"unproved","evidence":"none","why":"w"}`, false, false, "unproved, evidence none, held for 0s: w"},
		"stays":           {503, `{"result":"stays","evidence":"none","why":"w"}`, false, false, "stays, evidence none, held for 0s: w"},
		"observed":        {200, `{"result":"drained","evidence":"observed","why":"w"}`, true, false, "drained, evidence observed, held for 0s: w"},
		"cannot vouch":    {503, `{"error":"cannot-vouch","why":"w"}`, false, false, "answered 503 cannot-vouch: w"},
		"too many":        {429, `{"error":"too-many-hooks-of-pod","why":"w"}`, false, false, "answered 429 too-many-hooks-of-pod: w"},
		"a proxy":         {502, "<html>", false, false, "answered 502, which is no answer of apisix-drain"},
		"somebody else":   {200, "<html>", false, false, "answered 200, which is no answer of apisix-drain"},
		"an empty object": {200, "{}", false, false, "answered 200, which is no answer of apisix-drain"},
		"forbidden":       {403, `{"error":"forbidden","why":"w"}`, false, true, "refused with 403 forbidden: w"},
		"elsewhere":       {301, "", false, true, "refused with 301, which is no answer of apisix-drain"},
	} {
		t.Run(name, func(t *testing.T) {
			said, err := understand(test.status, []byte(test.body))
			got := said.String()
			if err != nil {
				got = err.Error()
			}
			if got != test.want {
				t.Errorf("got %q", got)
			}
			if refused := errors.As(err, &refusal{}); refused != test.refused {
				t.Errorf("refused: %v", refused)
			}
			if err == nil && said.proved != test.proved {
				t.Errorf("proved: %v", said.proved)
			}
		})
	}
}
