// Package authtest tests transport/auth and transport/client/oauth against an
// authorization server that nobody here wrote: zitadel/oidc, embedded in the
// tests, on loopback and over TLS.
//
// It is a module of its own, since that library needs other versions of
// OpenTelemetry than the actor library of the main module does.
//
//	go test ./...
package authtest
