package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/mcpengine/mcpengine/codec"
)

const (
	// maxResumes is how many reconnections of a stream may follow one another
	// without an event.
	maxResumes = 5
	// firstPause and lastPause bound the pause before a reconnection where the
	// server did not ask for one; it doubles each time.
	firstPause = 500 * time.Millisecond
	lastPause  = 30 * time.Second
	// leastPause keeps a server that asks for none from being run against.
	leastPause = 10 * time.Millisecond
	// maxTails limits the reply streams that are read on after their response,
	// and tailTime the time for that. Read to its end, a connection can be used
	// again, and some servers send progress after the response.
	maxTails = 64
	tailTime = time.Second
)

// position is what is known of a stream over all its connections.
type position struct {
	lastID   string
	retry    time.Duration
	hasRetry bool
	tries    int // connections since the last event
}

// pause gives how long to wait before the next connection.
func (p *position) pause() time.Duration {
	if p.hasRetry {
		return max(p.retry, leastPause)
	}
	return min(firstPause<<min(p.tries, 10), lastPause)
}

// readEvents receives the messages of one connection of a stream until it ends,
// and tells why. With a call it stops when the call is answered, without error.
func (h *httpLink) readEvents(events *SSEReader, at *position, k *call) error {
	var m codec.Message
	for {
		e, err := events.Next()
		if id := events.LastEventID(); id != "" {
			at.lastID = id
		}
		if d, ok := events.Retry(); ok {
			at.retry, at.hasRetry = d, true
		}
		if err != nil {
			return err
		}
		at.tries = 0
		if e.Type == "message" && len(e.Data) > 0 {
			h.c.receive(&m, e.Data, k)
		}
		if k != nil && k.answered() {
			return nil
		}
	}
}

// readReply reads the reply stream of a call, over as many connections as it
// takes (section Resumability and Redelivery). It owns cancel, which ends the
// connection.
func (h *httpLink) readReply(ctx context.Context, cancel context.CancelFunc, res *http.Response, k *call) error {
	var at position
	for {
		events := NewSSEReader(res.Body, h.c.o.MaxMessageBytes)
		err := h.readEvents(events, &at, k)
		if err == nil {
			h.readTail(cancel, res, events)
			return nil
		}
		closeBody(res)
		if errors.Is(err, ErrTooLarge) || ctx.Err() != nil {
			cancel()
			return err
		}
		if res, err = h.resume(ctx, &at, err); err != nil {
			cancel()
			return err
		}
	}
}

// readTail reads on what follows a response on its stream, on the side.
func (h *httpLink) readTail(cancel context.CancelFunc, res *http.Response, events *SSEReader) {
	end := func() {
		cancel()
		closeBody(res)
	}
	select {
	case h.tails <- struct{}{}:
	default:
		end()
		return
	}
	started := h.goes(func() {
		defer func() { <-h.tails }()
		defer time.AfterFunc(tailTime, cancel).Stop()
		var at position
		if err := h.readEvents(events, &at, nil); err != nil {
			h.c.log.Debug("client: a reply stream ended", "error", err)
		}
		end()
	})
	if !started {
		<-h.tails
		end()
	}
}

// resume connects again to a stream that has ended because of cause.
func (h *httpLink) resume(ctx context.Context, at *position, cause error) (*http.Response, error) {
	if at.lastID == "" {
		return nil, fmt.Errorf("%w: %w", ErrNoResponse, cause)
	}
	for at.tries < maxResumes {
		if !sleep(ctx, at.pause()) {
			return nil, ctx.Err()
		}
		at.tries++
		res, err := h.get(ctx, at.lastID)
		if err == nil {
			return res, nil
		}
		var status *HTTPError
		if errors.Is(err, ErrSessionLost) || ctx.Err() != nil {
			return nil, err
		}
		if cause = err; errors.As(err, &status) && status.Status/100 == 4 && status.Status != http.StatusTooManyRequests {
			break
		}
	}
	return nil, fmt.Errorf("%w, and was not resumed: %w", ErrNoResponse, cause)
}

// sleep waits, and reports whether ctx let it.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// get opens a stream, after an event where lastID is not empty.
func (h *httpLink) get(ctx context.Context, lastID string) (*http.Response, error) {
	req, session, err := h.request(ctx, http.MethodGet, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", typeSSE)
	if lastID != "" {
		req.Header.Set(headerLastID, lastID)
	}
	res, err := h.client.Do(req)
	switch {
	case err != nil:
		return nil, err
	case res.StatusCode == http.StatusNotFound && session != "" && lastID != "":
		err = fmt.Errorf("%w: %w", ErrSessionLost, readHTTPError(res))
		h.c.lost(err)
		return nil, err
	case res.StatusCode != http.StatusOK:
		return nil, readHTTPError(res)
	case mediaType(res) != typeSSE:
		closeBody(res)
		return nil, fmt.Errorf("%w: a stream of content type %q", ErrMalformed, res.Header.Get("Content-Type"))
	}
	return res, nil
}

// ready opens the GET stream and waits until the server has it: what a server
// sends there before that may be lost.
func (h *httpLink) ready(ctx context.Context) {
	if h.c.o.NoStream || !h.goes(h.listen) {
		return
	}
	patience := time.NewTimer(h.c.o.StreamWait)
	defer patience.Stop()
	select {
	case <-h.opened:
	case <-patience.C:
	case <-ctx.Done():
	case <-h.ctx.Done():
	}
}

// listen keeps the GET stream open (section Listening for Messages from the
// Server). It gives up where the server has none, and after some connections
// in a row that brought nothing.
func (h *httpLink) listen() {
	var at position
	for at.tries <= maxResumes {
		err := h.listenOnce(&at)
		var status *HTTPError
		switch {
		case h.ctx.Err() != nil || errors.Is(err, ErrSessionLost):
			return
		case errors.As(err, &status) && status.Status/100 == 4 && status.Status != http.StatusTooManyRequests:
			if status.Status != http.StatusMethodNotAllowed {
				h.c.noteFault("the GET stream was refused: " + status.Error())
			}
			return
		}
		if !sleep(h.ctx, at.pause()) {
			return
		}
		at.tries++
	}
	h.c.noteFault("the GET stream was given up")
}

// longStream is how long a stream must have stood to count as one that works:
// proxies cut streams on which nothing happens.
const longStream = 10 * time.Second

func (h *httpLink) listenOnce(at *position) error {
	res, err := h.get(h.ctx, at.lastID)
	h.openedOnce.Do(func() { close(h.opened) })
	if err != nil {
		return err
	}
	defer closeBody(res)
	begun := time.Now()
	err = h.readEvents(NewSSEReader(res.Body, h.c.o.MaxMessageBytes), at, nil)
	if time.Since(begun) > longStream {
		at.tries = 0
	}
	return err
}
