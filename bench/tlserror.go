package bench

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/mcpengine/mcpengine/transport/client/wire"
)

// tlsHint explains an error of TLS or of the choice of HTTP in one line that says what to do; "" for any other.
func tlsHint(target string, err error) string {
	var unknown x509.UnknownAuthorityError
	var host x509.HostnameError
	var bad x509.CertificateInvalidError
	var record tls.RecordHeaderError
	var op *net.OpError
	var status *wire.StatusError
	switch {
	case errors.As(err, &unknown):
		return fmt.Sprintf("cannot connect to %s: nobody whom this machine trusts has signed its certificate; "+
			"give the signer's with --cacert FILE, or do not check with --insecure", target)
	case errors.As(err, &host):
		return fmt.Sprintf("cannot connect to %s: its certificate is not for %s but for %s; "+
			"use such a name, or do not check with --insecure", target, host.Host, namesOf(host.Certificate))
	case errors.As(err, &bad) && bad.Reason == x509.Expired:
		return fmt.Sprintf("cannot connect to %s: its certificate is valid from %s to %s only; "+
			"renew it, or do not check with --insecure", target, bad.Cert.NotBefore.UTC().Format(time.DateOnly), bad.Cert.NotAfter.UTC().Format(time.DateOnly))
	case errors.As(err, &bad):
		return fmt.Sprintf("cannot connect to %s: its certificate cannot be used (%v); "+
			"mend it, or do not check with --insecure", target, bad)
	case errors.As(err, &record):
		return fmt.Sprintf("cannot connect to %s: there is no TLS at this port; write http:// in place of https://", target)
	case errors.As(err, &op) && op.Op == "remote error":
		return remoteHint(target, op.Err.Error())
	case errors.As(err, &status) && strings.Contains(string(status.Body), "HTTP request to an HTTPS server"):
		return fmt.Sprintf("cannot connect to %s: there is TLS at this port; write https:// in place of http://", target)
	}
	return ""
}

// remoteHint explains the alert with which a server has ended a handshake.
func remoteHint(target, alert string) string {
	switch {
	case strings.Contains(alert, "no application protocol"):
		return fmt.Sprintf("cannot connect to %s: it does not offer the HTTP that was asked for (%s); "+
			"with --http2 leave that out, without it add it", target, alert)
	case strings.Contains(alert, "certificate") || strings.Contains(alert, "unknown authority"):
		return fmt.Sprintf("cannot connect to %s: it does not accept the client's certificate, or wants one (%s); "+
			"give one that it trusts with --cert FILE --key FILE", target, alert)
	}
	return fmt.Sprintf("cannot connect to %s: it refused the TLS handshake (%s); look at what its log says", target, alert)
}

// namesOf lists what a certificate is for.
func namesOf(c *x509.Certificate) string {
	names := append([]string(nil), c.DNSNames...)
	for _, ip := range c.IPAddresses {
		names = append(names, ip.String())
	}
	if len(names) == 0 {
		return "no name at all"
	}
	return clip([]byte(strings.Join(names, ", ")))
}
