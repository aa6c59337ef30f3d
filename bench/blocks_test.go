package bench

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"
)

// TestBlocksAndSlots: the blocks of a result and the slots that were told while the run was under way hold every call
// once: added up they are the distributions of the result, bit for bit.
func TestBlocksAndSlots(t *testing.T) {
	slots := NewHistogram()
	told := map[string]int64{}
	var last Slot
	c := Config{
		Rate: 300, Duration: 7 * time.Second, Timeout: 30 * time.Millisecond, Tools: []ToolChoice{{"echo", 1}, {"write", 2}},
		OnSlot: func(s Slot) {
			for outcome, n := range s.Outcomes {
				told[outcome] += n
			}
			for _, l := range s.Latency {
				for _, b := range l.Response {
					slots.Record(time.Duration(b.ValueUS)*time.Microsecond, b.Count)
				}
			}
			last = s
		},
	}
	n := 0
	res, _ := runVirtual(t, c, func(now time.Time) time.Time {
		n++
		return now.Add(time.Duration(n%40) * time.Millisecond)
	})
	if told["ok"] != res.Requests.OK || told["timeout"] != res.Requests.Timeout || res.Requests.Timeout == 0 || last.Begun != res.Requests.Total {
		t.Errorf("slots told of %v, %d begun; the result has %+v", told, last.Begun, res.Requests)
	}
	if got, want := slots.Dist().HDR, all(res).Response.HDR; got != want {
		t.Error("the slots added up differ from the distribution of the result")
	}
	var js bytes.Buffer
	if err := res.WriteJSON(&js); err != nil {
		t.Fatal(err)
	}
	var read Result
	if err := json.Unmarshal(js.Bytes(), &read); err != nil {
		t.Fatal(err)
	}
	for i := range read.Latency {
		l := &read.Latency[i]
		sum, ok, errors := NewHistogram(), int64(0), int64(0)
		for j := range l.Blocks {
			b := &l.Blocks[j]
			ok, errors = ok+b.OK, errors+b.Errors
			if j > 0 && b.FromS != l.Blocks[j-1].ToS {
				t.Errorf("%s: block %d begins at %v, the one before ends at %v", l.Tool, j, b.FromS, l.Blocks[j-1].ToS)
			}
			buckets, err := b.Buckets()
			if err != nil {
				t.Fatal(err)
			}
			for _, x := range buckets {
				sum.Record(time.Duration(x.ValueUS)*time.Microsecond, x.Count)
			}
		}
		wantErrors := int64(0)
		if l.Method == "*" {
			wantErrors = res.Requests.Total - res.Requests.OK
		} else if sum.Dist().HDR != l.Response.HDR {
			t.Errorf("%s: the blocks added up differ from the distribution", l.Tool)
		}
		if len(l.Blocks) != resultBlocks || ok != l.Response.Count || errors != wantErrors {
			t.Errorf("%s %s: %d blocks, %d successes, %d errors; want %d, %d, %d", l.Method, l.Tool, len(l.Blocks), ok, errors, resultBlocks, l.Response.Count, wantErrors)
		}
	}
}

// TestProgressSoFar: a live view learns why the result will not be valid while the run is under way.
func TestProgressSoFar(t *testing.T) {
	var reasons []string
	var dropped int64
	c := Config{Rate: 100, Duration: 5 * time.Second, MaxInFlight: 1, Overflow: Skip, OnProgress: func(p Progress) {
		if p.Phase == PhaseMeasuring {
			reasons, dropped = p.Reasons, p.Dropped
		}
	}}
	res, _ := runVirtual(t, c, func(now time.Time) time.Time { return now.Add(100 * time.Millisecond) })
	if len(reasons) == 0 || dropped == 0 || res.Verdict.Valid {
		t.Errorf("the last look has the reasons %q and %d dropped; the verdict is %+v", reasons, dropped, res.Verdict)
	}
}
