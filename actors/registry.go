package actors

import (
	"slices"

	"github.com/asynkron/protoactor-go/actor"
)

// registryBuckets is how many maps, of 32 locks each, the registry of a system
// has. The actor library makes 1,024 of them: 3 MB in 65,000 objects, through
// which every collection of garbage would walk.
const registryBuckets = 8

// compact lets most of a new system's registry go. A process is found by the
// hash of its name modulo the number of buckets, so that whatever is in one of
// the buckets that stay is in the right one.
func compact(r *actor.ProcessRegistryValue) {
	all := r.LocalPIDs.LocalPIDs
	r.LocalPIDs.LocalPIDs = slices.Clone(all[:registryBuckets])
	for _, bucket := range all[registryBuckets:] {
		bucket.IterCb(func(name string, process any) { r.Add(process.(actor.Process), name) })
	}
}
