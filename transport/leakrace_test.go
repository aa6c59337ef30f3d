//go:build race

package transport_test

const raceDetector = true
