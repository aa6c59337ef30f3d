// Package oauth gets access tokens for MCP servers that want them, as an
// http.RoundTripper for client.Options.HTTPClient. It is the client side of MCP's
// basic/authorization (2025-06-18, 2025-11-25, 2026-07-28) on top of
// golang.org/x/oauth2.
//
//	transport, err := oauth.New(oauth.Options{
//		Endpoint:    "https://mcp.example.com/mcp",
//		MetadataURL: "https://app.example.com/client.json", // Client ID Metadata Document
//		RedirectURL: "http://127.0.0.1:3000/callback",
//		Authorize:   openBrowserAndWaitForCallback,
//	})
//	err = transport.Authorize(ctx) // or let the first request do it
//	c, err := client.ConnectHTTP(ctx, "https://mcp.example.com/mcp",
//		&client.Options{HTTPClient: transport.HTTPClient()})
//
// What happens on a 401, or on Authorize:
//
//  1. The metadata of the resource is fetched (RFC 9728): from the URL that the
//     challenge names, else from the well-known URI with the path of the
//     endpoint, else from the one of the host. It must be about the endpoint.
//  2. The metadata of its authorization server is fetched (RFC 8414, or OpenID
//     Connect Discovery), from the places and in the order of the specification.
//     Its issuer must be the one that was asked for, character by character.
//  3. The client is the one registered beforehand with that issuer, else the one
//     of MetadataURL, else one that registers itself (RFC 7591, deprecated, and
//     only where Options.Register allows it).
//  4. A token is got by the authorization code grant with PKCE (S256), state and
//     the check of iss (RFC 9207), or by the client credentials grant; resource
//     (RFC 8707) is in each request for a code or a token, a refresh included.
//  5. The request is made again.
//
// On a 403 with insufficient_scope the same happens with the union of the scopes
// asked for so far and those of the challenge, unless these were asked for
// already: then the 403 is final.
//
// A reader may rely on this as well:
//
//   - A token is sent to the resource that it was got for and to nothing else,
//     and client credentials to the issuer that they belong to. If the server
//     names another authorization server, nothing of the old one is used again.
//   - All URLs that a server names must be https. Those on the loopback interface
//     are for servers which are there themselves, and may be http.
//   - Documents are limited to 256 KiB, requests to 10 seconds, redirects to those
//     of a GET within an origin, attempts of one request to four.
//   - However many requests are refused at once, there is one flow.
//   - No token, code, secret or verifier is in an error or a log record.
//   - Tokens are kept in memory only.
package oauth
