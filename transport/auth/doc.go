// Package auth is the OAuth 2.1 resource server in front of an MCP endpoint, as
// plain net/http middleware. It knows headers and tokens, and nothing of the
// protocol behind it; package engine learns who calls through the context.
//
//	verifier, err := auth.NewJWTVerifier(auth.JWTOptions{
//		Issuer:   "https://login.example.com",
//		JWKSURL:  "https://login.example.com/keys",
//		Audience: []string{"https://mcp.example.com/mcp"},
//	})
//	resource, err := auth.NewResource(auth.ResourceOptions{
//		Resource:             "https://mcp.example.com/mcp",
//		AuthorizationServers: []string{"https://login.example.com"},
//		Verifier:             verifier,
//	})
//	e := engine.New(info, &engine.Options{Principal: auth.PrincipalFrom})
//	mux.Handle("/mcp", resource.Require("tools:read")(transport.NewHTTPHandler(e, nil)))
//	mux.Handle(resource.MetadataPath(), resource.Metadata())
//
// What a reader may rely on:
//
//   - A request reaches the handler behind Require only with a token that the
//     Verifier accepts and that holds the scopes (MCP 2026-07-28,
//     basic/authorization, Access Token Usage; 2025-06-18 and 2025-11-25 alike).
//     Every request carries its token; no session makes up for one.
//   - A token comes in the Authorization header only. A request with one in the
//     query is refused with 400 (OAuth 2.1 section 5.1, RFC 6750 section 2).
//   - Refusals are 401 or 403 with WWW-Authenticate: resource_metadata (RFC 9728
//     section 5.1), scope with all that the operation needs, and error
//     (RFC 6750 section 3.1).
//   - JWTs are held to an allow-list of asymmetric algorithms, the issuer, the
//     audience (RFC 8707), exp, nbf and iat (RFC 7519, RFC 9068). "none" and the
//     symmetric algorithms cannot be allowed.
//   - No token, nor a part of one, is in a log record, an error, a response, or
//     the headers that the handler behind sees: the token ends here, as the
//     rule against token passthrough has it.
//   - The keys of the authorization server are fetched with bounds on size, time
//     and frequency, however many tokens with unknown keys arrive.
//
// Introspection (RFC 7662) is not here; a Verifier of one's own can do it.
// Authorization is for HTTP only: on stdio credentials come from the environment.
package auth
