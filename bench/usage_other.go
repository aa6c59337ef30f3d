//go:build !unix

package bench

import "time"

// cpuTime is not known here, so the verdict does without.
func cpuTime() time.Duration { return 0 }

// openFiles is a cautious guess where there is no limit to ask for.
func openFiles() int { return 8192 }
