//go:build !race

package compare

func raceDetector() bool { return false }
