//go:build race

package bench

// raceDetector slows arithmetic down so much that long calculations without goroutines are left out.
const raceDetector = true
