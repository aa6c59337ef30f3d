package engine

// Refusals counts what an engine turned away, by reason, and what became of its
// sessions, since it was made.
type Refusals struct {
	Sessions            int64 // too many sessions, and all in use
	SessionsOfPrincipal int64 // too many sessions of one principal, and all in use
	Requests            int64 // too many requests, in all or in one session
	DuplicateIDs        int64 // a request of that id was in flight in its session
	Subscriptions       int64 // too many subscriptions in one session
	Asked               int64 // too many requests of ours that a client has not answered
	Draining            int64 // the engine was shutting down
	Tasks               int64 // too many tasks
	Batches             int64 // batches that were too long, empty or no array
	Dropped             int64 // messages that found no room in a session that had no stream for them
	RateLimited         int64 // calls of a tool that came too soon (Options.RateLimit)
	UnknownSessions     int64 // requests whose session does not exist, or not for them
	Evicted             int64 // sessions that made room for others
	Revived             int64 // sealed sessions that came back
	StoreFailures       int64 // times that the session store failed
}

// refusals gives a snapshot.
func (e *Engine) refusals() Refusals {
	r := e.system.Refusals()
	all := Refusals{
		Sessions: r.Sessions, SessionsOfPrincipal: r.SessionsOfPrincipal, Requests: r.Requests,
		DuplicateIDs: r.DuplicateIDs, Subscriptions: r.Subscriptions, Asked: r.Outgoing, Draining: r.Draining,
		Evicted: r.Evicted, UnknownSessions: e.sessions.unknown.Load(), Revived: e.sessions.revived.Load(),
		StoreFailures: e.sessions.storeFailures.Load(), Tasks: e.tasks.refused.Load(),
		Batches: e.sessions.batches.Load(), Dropped: e.sessions.dropped.Load(),
	}
	if e.rates != nil {
		all.RateLimited = e.rates.refused.Load()
	}
	return all
}
