//go:build !race

package engine_test

const modernRequests = 10_000
