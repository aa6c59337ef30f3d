package main

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"time"

	"github.com/mcpengine/mcpengine/bench"
	"github.com/spf13/cobra"
)

// tlsFlags holds the flags of a connection, for every command that has a URL: whom the client trusts, what it shows, which
// HTTP it speaks.
type tlsFlags struct {
	insecure      bool
	ca, cert, key string
	http2         bool
}

func (f *tlsFlags) register(cmd *cobra.Command) {
	p := cmd.Flags()
	p.BoolVar(&f.insecure, "insecure", false, "of https: do not check the server's certificate")
	p.StringVar(&f.ca, "cacert", "", "of https: file with the certificates (PEM) to trust instead of this machine's")
	p.StringVar(&f.cert, "cert", "", "of https: file with the client's certificate (PEM), with --key")
	p.StringVar(&f.key, "key", "", "of https: file with the key (PEM) of --cert")
	p.BoolVar(&f.http2, "http2", false, "speak HTTP/2: by ALPN to https://, with prior knowledge to http://")
}

// clientFlags holds the flags of the client of a run: those of its connections, and what it answers and subscribes to.
type clientFlags struct {
	tls         tlsFlags
	auth        authFlags
	answers     []string
	answerDelay time.Duration
	subscribe   []string
}

func (f *clientFlags) register(cmd *cobra.Command) {
	f.tls.register(cmd)
	f.auth.register(cmd)
	p := cmd.Flags()
	p.StringSliceVar(&f.answers, "answer", nil,
		"answer what the server asks: sampling, elicitation (accepts), roots; default none is declared")
	p.DurationVar(&f.answerDelay, "answer-delay", 0, "time that each of these answers takes")
	p.StringArrayVar(&f.subscribe, "subscribe", nil, "URI of a resource that every session subscribes to (repeatable)")
}

// apply puts what was chosen into c.
func (f *clientFlags) apply(c *bench.Config) error {
	c.AnswerDelay, c.Subscribe = f.answerDelay, f.subscribe
	for _, a := range f.answers {
		c.Answers = append(c.Answers, bench.Answer(a))
	}
	return f.tls.apply(c)
}

// apply reads the files and puts what was chosen into c. The error is a usageError in one line.
func (f *tlsFlags) apply(c *bench.Config) error {
	c.HTTP2 = f.http2
	if f.http2 && len(c.Command) > 0 {
		return usageError("--http2 is of HTTP: leave it out for a stdio server")
	}
	switch {
	case !f.insecure && f.ca == "" && f.cert == "" && f.key == "":
		return nil
	case len(c.Command) > 0:
		return usageError("--insecure, --cacert, --cert and --key are of https: leave them out for a stdio server")
	case f.insecure && f.ca != "":
		return usageError("--insecure checks nothing, so --cacert has no use: give one of them")
	case (f.cert == "") != (f.key == ""):
		return usageError("--cert and --key go together: give both files")
	}
	c.TLS = &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: f.insecure}
	if f.ca != "" {
		pem, err := os.ReadFile(f.ca)
		if err != nil {
			return usageError("--cacert: %v", err)
		}
		c.TLS.RootCAs = x509.NewCertPool()
		if !c.TLS.RootCAs.AppendCertsFromPEM(pem) {
			return usageError("--cacert %s holds no certificate: it must be PEM, with lines of BEGIN CERTIFICATE", f.ca)
		}
	}
	if f.cert != "" {
		pair, err := tls.LoadX509KeyPair(f.cert, f.key)
		if err != nil {
			return usageError("--cert %s with --key %s: %v", f.cert, f.key, err)
		}
		c.TLS.Certificates = []tls.Certificate{pair}
	}
	return nil
}
