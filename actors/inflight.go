package actors

// inFlight is a session's table of requests in flight, by exact id token. Most
// sessions have one request at a time, or none, and need no map for it.
type inFlight struct {
	one  *Request
	more map[string]*Request
}

// get finds a request, or gives nil.
func (t *inFlight) get(id string) *Request {
	if t.one != nil && t.one.key() == id {
		return t.one
	}
	return t.more[id]
}

// add puts a request in, whose id is not in.
func (t *inFlight) add(r *Request) {
	if t.one == nil {
		t.one = r
		return
	}
	if t.more == nil {
		t.more = make(map[string]*Request)
	}
	t.more[r.key()] = r
}

// remove takes a request out, if it is in.
func (t *inFlight) remove(r *Request) {
	switch {
	case t.one == r:
		t.one = nil
	case t.more[r.key()] == r:
		delete(t.more, r.key())
	}
}

// len tells how many there are.
func (t *inFlight) len() int {
	if t.one == nil {
		return len(t.more)
	}
	return 1 + len(t.more)
}

// all gives them one after another.
func (t *inFlight) all(yield func(*Request) bool) {
	if t.one != nil && !yield(t.one) {
		return
	}
	for _, r := range t.more {
		if !yield(r) {
			return
		}
	}
}
