//go:build !race

package chaos_test

// slack is what all time limits are multiplied by.
const slack = 1
