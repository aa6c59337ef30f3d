package actors

import "time"

// Limits bounds everything that a System holds. Zero means the default that
// is written at the field; a negative number means no limit.
type Limits struct {
	MaxSessions             int           // sessions at once; 100,000
	MaxSessionsPerPrincipal int           // sessions at once that one named principal has; 10,000
	MaxRequests             int           // requests in flight in all; 65,536
	MaxRequestsPerSession   int           // requests in flight in one session; 1,024
	MaxSubscriptions        int           // subscriptions in one session; 1,024
	MaxListeners            int           // subscriptions of the stateless era in all; 65,536
	MaxOutgoing             int           // requests of ours that one peer has not answered; 1,024
	MaxMailbox              int           // messages that wait in one session's mailbox; 4,096
	PooledRequests          int           // request actors kept for reuse; 1,024
	SessionIdle             time.Duration // a session without requests and streams ends after it; 30 minutes
	SubscriptionMinInterval time.Duration // updates of one subscription that come faster coalesce; 50 ms
}

const noLimit = int(^uint(0) >> 1)

func (l Limits) withDefaults() Limits {
	for _, f := range []struct {
		v *int
		d int
	}{
		{&l.MaxSessions, 100_000},
		{&l.MaxSessionsPerPrincipal, 10_000},
		{&l.MaxRequests, 65_536},
		{&l.MaxRequestsPerSession, 1_024},
		{&l.MaxSubscriptions, 1_024},
		{&l.MaxListeners, 65_536},
		{&l.MaxOutgoing, 1_024},
		{&l.MaxMailbox, 4_096},
		{&l.PooledRequests, 1_024},
	} {
		switch {
		case *f.v == 0:
			*f.v = f.d
		case *f.v < 0:
			*f.v = noLimit
		}
	}
	if l.SessionIdle == 0 {
		l.SessionIdle = 30 * time.Minute
	}
	if l.SubscriptionMinInterval == 0 {
		l.SubscriptionMinInterval = 50 * time.Millisecond
	}
	return l
}
