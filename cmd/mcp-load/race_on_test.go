//go:build race

package main

// raceDetector adds memory to whatever a process keeps.
const raceDetector = true
