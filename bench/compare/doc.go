// Package compare says whether a server has become slower: it holds results of a new state against results of an old one
// and gives, for each tool and metric, the change, an interval of the change, and a verdict.
//
// The calls of a server share its queue, so their times are correlated and a test that takes them for independent finds a
// regression in every second pair of equal runs. The unit here is the block of time (bench.Block, 40 to a run): blocks
// are merged in pairs while neighbours are still correlated, and where several runs of one side differ by more than their
// blocks explain, the run is the unit. Every metric gets its p-value from Welch's t test on these units, and Holm's
// correction keeps the level over all metrics and tools together.
//
// A quantile is compared by its rank: at the value that is the quantile of both sides taken together, the shares of
// slower calls are compared. That needs no density, and the same test, with the old times multiplied by a factor, gives
// the interval of the change: all factors that it does not reject.
//
// What the method cannot know: one run a side says nothing about how runs differ from each other, such as by what else
// the machine did. Give three or more a side, made in turns.
package compare
