package transport

import "time"

// HTTPOptions configures NewHTTPHandler. Nil is fine; zero means the default
// written at each field.
type HTTPOptions struct {
	// AllowedHosts are names that the Host header may hold besides those of
	// the loopback interface, as "mcp.example.com" or "mcp.example.com:8443".
	// Requests that arrive on a loopback address are held to these names,
	// which is what stops DNS rebinding; behind a proxy on the same host, name
	// here what the proxy passes on. Requests on other addresses are held to
	// the list only where it is not empty.
	AllowedHosts []string
	// AllowedOrigins are the origins of web pages that may call, besides the
	// server's own, as "https://app.example". "*" allows all.
	AllowedOrigins []string
	// CORS answers preflights of allowed origins and marks responses for them.
	CORS bool
	// MaxHeaders is how many headers a request may have, counted by name; their
	// bytes are the server's to limit (http.Server.MaxHeaderBytes). Default 100.
	MaxHeaders int
	// MaxMessageBytes is the largest body of a POST. Default 4 MiB.
	MaxMessageBytes int
	// BodyTimeout is how long the body of a POST may take, to within a tenth of
	// a second. Default 30 s.
	BodyTimeout time.Duration
	// CommitDelay is how long a reply may still become a plain JSON response;
	// after that the response's header is sent and the reply is an event
	// stream, so that nobody on the way takes a slow call for a dead one. It
	// may be an eighth more, and a millisecond at least. Default 500 ms.
	CommitDelay time.Duration
	// KeepAlive is the time between comments on an idle event stream. Default
	// 15 s.
	KeepAlive time.Duration
	// WriteTimeout is how long one write to a stream may take before the
	// stream is given up. Default 30 s.
	WriteTimeout time.Duration
	// MaxQueueBytes is how much waits for a peer that does not read its
	// event stream. What comes beyond is dropped, or, where events are kept,
	// the response ends and the client gets the rest by resuming. Default
	// 1 MiB.
	MaxQueueBytes int
	// Events makes event streams resumable from 2025-03-26 on: events get
	// ids, and a client whose connection broke gets with Last-Event-ID what
	// it missed. It also lets a handler close the connection of its call
	// (engine.Call.CloseStream, 2025-11-25). Each request then has a goroutine
	// of its own. NewMemoryEvents makes a store. Default: none.
	Events EventStore
	// Retry is how long clients of 2025-11-25 are told to wait before they
	// come back to a stream. Default 1 s.
	Retry time.Duration
}

func (o *HTTPOptions) withDefaults() HTTPOptions {
	var c HTTPOptions
	if o != nil {
		c = *o
	}
	if c.MaxMessageBytes <= 0 {
		c.MaxMessageBytes = 4 << 20
	}
	if c.MaxHeaders <= 0 {
		c.MaxHeaders = 100
	}
	if c.MaxQueueBytes <= 0 {
		c.MaxQueueBytes = 1 << 20
	}
	for _, d := range []struct {
		v         *time.Duration
		otherwise time.Duration
	}{
		{&c.BodyTimeout, 30 * time.Second},
		{&c.CommitDelay, 500 * time.Millisecond},
		{&c.KeepAlive, 15 * time.Second},
		{&c.WriteTimeout, 30 * time.Second},
		{&c.Retry, time.Second},
	} {
		if *d.v <= 0 {
			*d.v = d.otherwise
		}
	}
	return c
}
