//go:build race

package engine_test

// modernRequests is less than the acceptance wants, since each takes ten times as
// long here.
const modernRequests = 2_000
