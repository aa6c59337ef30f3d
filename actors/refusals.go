package actors

import (
	"errors"
	"sync/atomic"
)

// Refusals counts what admission turned away, by reason, since the system
// began.
type Refusals struct {
	Sessions            int64 // too many sessions, and all in use
	SessionsOfPrincipal int64 // too many sessions of one principal, and all in use
	Requests            int64 // too many requests in all, in a session, or in its mailbox
	DuplicateIDs        int64 // a request of that id was in flight
	Subscriptions       int64 // too many subscriptions in a session
	Outgoing            int64 // too many requests that the peer has not answered
	Draining            int64 // the system was shutting down
	Evicted             int64 // sessions that made room for others
}

// refusals is what Refusals is a snapshot of.
type refusals struct {
	sessions, sessionsOfPrincipal, requests, duplicateIDs, subscriptions, outgoing, draining, evicted atomic.Int64
}

// note counts a refusal and gives it back.
func (r *refusals) note(err error) error {
	for _, kind := range []struct {
		err     error
		counter *atomic.Int64
	}{
		{ErrTooManySessions, &r.sessions},
		{ErrTooManySessionsOfPrincipal, &r.sessionsOfPrincipal},
		{ErrOverloaded, &r.requests},
		{ErrDuplicateID, &r.duplicateIDs},
		{ErrTooManySubscriptions, &r.subscriptions},
		{ErrShutdown, &r.draining},
	} {
		if errors.Is(err, kind.err) {
			kind.counter.Add(1)
			break
		}
	}
	return err
}

// Refusals gives a snapshot.
func (s *System) Refusals() Refusals {
	r := &s.refusals
	return Refusals{
		Sessions: r.sessions.Load(), SessionsOfPrincipal: r.sessionsOfPrincipal.Load(),
		Requests: r.requests.Load(), DuplicateIDs: r.duplicateIDs.Load(), Subscriptions: r.subscriptions.Load(),
		Outgoing: r.outgoing.Load(), Draining: r.draining.Load(),
		Evicted: r.evicted.Load(),
	}
}
