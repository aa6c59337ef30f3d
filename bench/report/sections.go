package report

import "github.com/mcpengine/mcpengine/bench"

// sections is what commands other than run have found.
func sections(*bench.Result) []section { return nil }
