package mock

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mcpengine/mcpengine/codec"
)

const (
	maxAnswer  = 64 << 20         // of a call in a session of its own
	endTimeout = 10 * time.Second // of its DELETE
)

// hopByHop are the headers that concern one connection and do not pass (RFC 9110, section 7.6.1).
var hopByHop = []string{
	"Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection", "Te", "Trailer",
	"Transfer-Encoding", "Upgrade",
}

// endToEnd gives a copy of headers without those of the connection.
func endToEnd(h http.Header) http.Header {
	out := h.Clone()
	for _, list := range h["Connection"] {
		for name := range strings.SplitSeq(list, ",") {
			out.Del(strings.TrimSpace(name))
		}
	}
	for _, name := range hopByHop {
		delete(out, name)
	}
	return out
}

// send sends one request and gives its answer, whose body the caller closes.
func (u *upstream) send(method string, body []byte) (*http.Response, error) {
	r, err := http.NewRequestWithContext(u.ctx, method, u.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header = u.header
	if method != http.MethodPost {
		r.Body, r.ContentLength, r.GetBody = http.NoBody, 0, nil
	}
	return u.proxy.transport.RoundTrip(r)
}

// call sends the call of a tool, as often and in a session of its own as the configuration has it.
func (u *upstream) call(x *exchange) (*http.Response, error) {
	if !u.proxy.config.Reinit || u.header.Get(headerSession) == "" {
		return u.fan(x)
	}
	if err := u.initialize(); err != nil {
		return nil, err
	}
	resp, err := readWhole(u.fan(x)) // the end of the session would cut it off
	if ended := u.end(); err == nil {
		err = ended
	}
	return resp, err
}

// readWhole reads an answer to its end and gives it with what was read as its body.
func readWhole(resp *http.Response, err error) (*http.Response, error) {
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	_ = resp.Body.Close()
	if err == nil && len(body) > maxAnswer {
		err = errors.New("an answer is larger than 64 MiB")
	}
	if err != nil {
		return nil, err
	}
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	resp.Header.Set("Content-Length", strconv.Itoa(len(body)))
	return resp, nil
}

// end ends the session that initialize has opened, also where the client has gone away.
func (u *upstream) end() error {
	if u.header.Get(headerSession) == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(u.ctx), endTimeout)
	defer cancel()
	u.ctx = ctx
	return u.discard(u.send(http.MethodDelete, nil))
}

// fan sends a call FanOut times at once and gives the first answer when all are there.
func (u *upstream) fan(x *exchange) (*http.Response, error) {
	var wg sync.WaitGroup
	extra := make([]error, max(u.proxy.config.FanOut, 1)-1)
	for i := range extra {
		id := codec.AppendString(nil, "mock fan-out "+strconv.FormatInt(u.proxy.copies.Add(1), 10))
		body := codec.AppendRequest(nil, id, codec.MethodToolsCall, x.message.Params)
		wg.Go(func() { extra[i] = u.discard(u.send(http.MethodPost, body)) })
	}
	resp, err := u.send(http.MethodPost, x.body)
	wg.Wait()
	if err != nil {
		return nil, err
	}
	if err := errors.Join(extra...); err != nil {
		_ = resp.Body.Close()
		return nil, err
	}
	return resp, nil
}

// initialize opens a session upstream, which the following requests name.
func (u *upstream) initialize() error {
	version := u.header.Get(headerVersion)
	if version == "" {
		version = revisions[0]
	}
	u.header.Del(headerSession)
	params := codec.AppendString([]byte(`{"protocolVersion":`), version)
	params = append(params, `,"capabilities":{},"clientInfo":{"name":"mcp-load mock","version":`...)
	params = append(codec.AppendString(params, u.proxy.config.Version), "}}"...)
	resp, err := u.send(http.MethodPost, codec.AppendRequest(nil, []byte("1"), codec.MethodInitialize, params))
	if err != nil {
		return err
	}
	status, id := resp.StatusCode, resp.Header.Get(headerSession)
	if err := u.discard(resp, nil); err != nil {
		return err
	}
	if status != http.StatusOK {
		return fmt.Errorf("initialize got status %d", status)
	}
	if id != "" {
		u.header.Set(headerSession, id)
	}
	return u.discard(u.send(http.MethodPost, codec.AppendNotification(nil, codec.NotifyInitialized, nil)))
}

// discard reads an answer to its end.
func (u *upstream) discard(resp *http.Response, err error) error {
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	return err
}
