package actors

import "testing"

func TestOutgoing(t *testing.T) {
	s := newSystem(t, Limits{MaxOutgoing: 2})
	session := open(t, s, "a")
	ask := func(want error) *Outgoing {
		t.Helper()
		o, err := session.Ask()
		checkError(t, "Ask", err, want)
		return o
	}
	first, second := ask(nil), ask(nil)
	ask(ErrOverloaded)
	if first.ID == second.ID {
		t.Errorf("Ask: both have the id %d", first.ID)
	}
	if session.Resolve(second.ID+1, "nobody's") {
		t.Error("Resolve of an id that nobody asked under: got true")
	}
	if !session.Resolve(second.ID, "answer") {
		t.Error("Resolve: got false")
	}
	<-second.Done
	if answer, err := second.Answer(); answer != "answer" || err != nil {
		t.Errorf("Answer: got %v, %v, want answer, nil", answer, err)
	}
	if session.Resolve(second.ID, "again") {
		t.Error("second Resolve: got true")
	}
	session.Forget(first)
	session.Forget(first)
	if session.Resolve(first.ID, "late") {
		t.Error("Resolve of a forgotten request: got true")
	}
	if n := session.PendingOutgoing(); n != 0 {
		t.Errorf("PendingOutgoing: got %d, want 0", n)
	}
	if third := ask(nil); third.ID == first.ID || third.ID == second.ID {
		t.Errorf("Ask: id %d is used again", third.ID)
	}
	other := open(t, s, "b")
	if other.Resolve(3, "from another session") {
		t.Error("Resolve in another session: got true")
	}
}
