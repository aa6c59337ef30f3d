package engine

// Revision is a revision of the protocol. Later ones compare greater.
type Revision uint8

// The revisions that are spoken here. Those up to Rev20251125 are the legacy
// era, with sessions and a handshake; Rev20260728 is stateless.
const (
	Rev20241105 Revision = iota + 1
	Rev20250326
	Rev20250618
	Rev20251125
	Rev20260728
)

const (
	newestLegacy = Rev20251125
	newest       = Rev20260728
)

var revisionNames = [...]string{
	Rev20241105: "2024-11-05",
	Rev20250326: "2025-03-26",
	Rev20250618: "2025-06-18",
	Rev20251125: "2025-11-25",
	Rev20260728: "2026-07-28",
}

// String gives the date that names the revision on the wire.
func (r Revision) String() string {
	if int(r) < len(revisionNames) {
		return revisionNames[r]
	}
	return ""
}

// IsModern reports whether the revision belongs to the stateless era.
func (r Revision) IsModern() bool { return r >= Rev20260728 }

// ParseRevision finds the revision of a name, or gives 0.
func ParseRevision[S ~string | ~[]byte](name S) Revision {
	for r := Rev20241105; r <= newest; r++ {
		if string(name) == revisionNames[r] {
			return r
		}
	}
	return 0
}
