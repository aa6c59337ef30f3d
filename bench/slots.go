package bench

import "time"

// maxSlots bounds what a run of any length keeps: when it is reached, neighbours are merged.
const maxSlots = 240

// slot is what ended in one short piece of time, as sparse histograms by series number.
type slot struct {
	from, to time.Duration // from the begin of the measured window
	series   [][]bucket
}

// timeline holds the slots of a run in order.
type timeline struct {
	slots []slot
	width int // how many collections go into one slot
	added int // into the last one
}

// add appends what a collection has found.
func (t *timeline) add(s slot) {
	if t.width == 0 {
		t.width = 1
	}
	if n := len(t.slots); n > 0 && t.added < t.width {
		t.slots[n-1] = join(t.slots[n-1], s)
		t.added++
		return
	}
	if len(t.slots) == maxSlots {
		for i := range maxSlots / 2 {
			t.slots[i] = join(t.slots[2*i], t.slots[2*i+1])
		}
		clear(t.slots[maxSlots/2:])
		t.slots = t.slots[:maxSlots/2]
		t.width *= 2
	}
	t.slots = append(t.slots, s)
	t.added = 1
}

func join(a, b slot) slot {
	out := slot{from: a.from, to: b.to, series: make([][]bucket, max(len(a.series), len(b.series)))}
	for i := range out.series {
		out.series[i] = mergeSparse(a.at(i), b.at(i))
	}
	return out
}

func (s *slot) at(i int) []bucket {
	if i < len(s.series) {
		return s.series[i]
	}
	return nil
}

// blocks groups the slots into intervalBlocks pieces of nearly equal time, and gives the samples of the series that
// keep chooses. There are none where the slots are too few.
func (t *timeline) blocks(keep ...int) [][]bucket {
	if len(t.slots) < intervalBlocks {
		return nil
	}
	out := make([][]bucket, intervalBlocks)
	for i := range t.slots {
		b := i * intervalBlocks / len(t.slots)
		for _, series := range keep {
			out[b] = mergeSparse(out[b], t.slots[i].at(series))
		}
	}
	return out
}
