//go:build race

package chaos_test

// slack is what all time limits are multiplied by: the race detector makes
// everything, and the start of a process above all, that much slower.
const slack = 3
