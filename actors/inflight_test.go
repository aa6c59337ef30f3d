package actors

import (
	"slices"
	"strings"
	"testing"
)

// TestInFlight takes requests in and out in orders that use the place for one
// request and the map by turns.
func TestInFlight(t *testing.T) {
	for _, c := range []struct {
		steps, want string // +a adds, -a removes
	}{
		{"", ""},
		{"+a", "a"},
		{"+a -a", ""},
		{"-a", ""},
		{"+a +b +c", "a b c"},
		{"+a +b -a", "b"},
		{"+a +b -b", "a"},
		{"+a +b -a +c", "b c"},
		{"+a +b -a +c -b -c", ""},
		{"+a +b -a +c -c +d +e -b", "d e"},
	} {
		requests := make(map[string]*Request)
		var table inFlight
		for step := range strings.FieldsSeq(c.steps) {
			id := step[1:]
			if requests[id] == nil {
				requests[id] = &Request{id: []byte(id)}
			}
			if step[0] == '+' {
				table.add(requests[id])
			} else {
				table.remove(requests[id])
			}
		}
		var got []string
		for r := range table.all {
			got = append(got, r.key())
		}
		slices.Sort(got)
		if list := strings.Join(got, " "); list != c.want || table.len() != len(got) {
			t.Errorf("%q: got %q and length %d, want %q", c.steps, list, table.len(), c.want)
		}
		for id, r := range requests {
			if want := slices.Contains(got, id); (table.get(id) == r) != want {
				t.Errorf("%q: get(%q) is it: got %v, want %v", c.steps, id, !want, want)
			}
		}
		other := &Request{id: []byte("a")}
		table.remove(other)
		if len(got) != table.len() {
			t.Errorf("%q: removing another request of the same id: got length %d, want %d", c.steps, table.len(), len(got))
		}
	}
}
