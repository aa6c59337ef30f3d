// Package codec turns bytes into messages and messages into bytes, for every
// revision of the Model Context Protocol from 2024-11-05 to 2026-07-28.
//
// Decoding is one validating pass over the bytes of a frame. It checks the
// grammar of RFC 8259 (which the JSON library underneath does not do in full:
// no raw control characters, no NaN, no leading zeros, valid UTF-8, bounded
// depth), finds the members that JSON-RPC 2.0 and MCP give a meaning, and
// leaves everything else as spans of the same bytes. Ids and progress tokens
// stay the exact tokens that the peer wrote; no number ever passes through a
// float. Member names are compared after unescaping, byte for byte: a spelling
// in another case is another name, and a protocol member that occurs twice is
// refused.
//
// Encoding appends to a buffer of the caller's. Neither direction allocates on
// the hot path; the budgets are tests.
//
// What is inside of arguments and results can be read in three ways: member by
// member from the bytes (Member, EachMember), at random from a parsed Tree, or
// into a Go type by a Decoder, which is as strict as the JSON Schema that is
// inferred from that type.
//
// A decoded Message borrows from the frame. Nothing of it may be kept after the
// frame's buffer is used again.
package codec
