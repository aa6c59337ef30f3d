package bench

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// secured puts the fake server behind what tune makes of a server, and gives its address without the scheme, and what
// trusts its certificate.
func secured(t *testing.T, tune func(*httptest.Server)) (addr string, trust *x509.CertPool) {
	t.Helper()
	f := &fakeServer{}
	f.start(t)
	srv := httptest.NewUnstartedServer(http.HandlerFunc(f.serve))
	srv.Config.ErrorLog = log.New(io.Discard, "", 0) // of handshakes that are meant to fail
	tune(srv)
	t.Cleanup(srv.Close)
	trust = x509.NewCertPool()
	if srv.Certificate() != nil {
		trust.AddCert(srv.Certificate())
	}
	return srv.Listener.Addr().String() + "/mcp", trust
}

// TestTLS runs over each pairing of TLS and HTTP, and explains what does not fit together in one line.
func TestTLS(t *testing.T) {
	both, trust := secured(t, func(s *httptest.Server) { s.EnableHTTP2 = true; s.StartTLS() })
	old, _ := secured(t, (*httptest.Server).StartTLS)
	clear2, _ := secured(t, func(s *httptest.Server) {
		s.Config.Protocols = &http.Protocols{}
		s.Config.Protocols.SetHTTP1(true)
		s.Config.Protocols.SetUnencryptedHTTP2(true)
		s.Start()
	})
	clear1, _ := secured(t, (*httptest.Server).Start)
	mutual, _ := secured(t, func(s *httptest.Server) {
		s.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
		s.StartTLS()
	})
	trusting := func(change func(*tls.Config)) *tls.Config {
		c := &tls.Config{RootCAs: trust}
		change(c)
		return c
	}
	plain := trusting(func(*tls.Config) {})
	later := trusting(func(c *tls.Config) { c.Time = func() time.Time { return time.Date(2300, 1, 1, 0, 0, 0, 0, time.UTC) } })
	port := both[strings.LastIndexByte(both, ':'):]
	for _, tt := range []struct {
		url   string
		conf  *tls.Config
		http2 bool
		want  string // "" where it works
	}{
		{"https://" + both, plain, false, ""},
		{"https://" + both, plain, true, ""},
		{"https://" + both, &tls.Config{InsecureSkipVerify: true}, false, ""},
		{"http://" + clear2, nil, true, ""},
		{"https://" + both, nil, false, "--cacert FILE"},
		{"https://" + both, nil, true, "--cacert FILE"},
		{"https://localhost" + port, plain, false, "is not for localhost but for example.com"},
		{"https://" + both, later, false, "renew it"},
		{"https://" + mutual, plain, false, "--cert FILE --key FILE"},
		{"https://" + old, plain, true, "with --http2 leave that out"},
		{"http://" + both, nil, false, "write https://"},
		{"https://" + clear2, nil, false, "write http://"},
		{"http://" + clear1, nil, true, "leave --http2 out"},
		{"http://" + clear1, plain, false, "is not an https:// URL"},
	} {
		res, err := Run(context.Background(), Config{
			URL: tt.url, TLS: tt.conf, HTTP2: tt.http2, Concurrency: 2, Requests: 10, Streams: true, Timeout: 5 * time.Second,
		})
		switch {
		case tt.want != "":
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s, HTTP/2 %v: got %v, want a line with %q", tt.url, tt.http2, err, tt.want)
			}
		case err != nil:
			t.Errorf("%s, HTTP/2 %v: %v", tt.url, tt.http2, err)
		default:
			if s := res.Streams; res.Requests.OK != 10 || res.Sessions.Closed != 2 || s.OpenPeak != 2 || s.Broken+s.Failed != 0 {
				t.Errorf("%s, HTTP/2 %v: requests %+v, sessions %+v, streams %+v; want 10 ok, 2 closed, 2 open", tt.url, tt.http2, res.Requests, res.Sessions, s)
			}
			if res.Conditions.HTTP2 != tt.http2 {
				t.Errorf("%s: conditions.http2 = %v, want %v", tt.url, res.Conditions.HTTP2, tt.http2)
			}
		}
	}
}
