package codec

// Kind tells which of the three shapes of JSON-RPC a message has.
type Kind uint8

const (
	// KindInvalid is a frame that is no message, or whose shape cannot be told.
	KindInvalid Kind = iota
	// KindRequest has an id and a method, and wants exactly one answer.
	KindRequest
	// KindNotification has a method and no id, and must not be answered.
	KindNotification
	// KindResponse has an id and a result.
	KindResponse
	// KindError has an error, and an id unless the peer could not read it.
	KindError
)

// Message is a decoded frame. All slices borrow from the frame or from the
// Message's own scratch space, and are valid until either is used again. A
// Message may be used for one frame after another; it then allocates nothing.
type Message struct {
	Kind Kind

	// ID is the exact token of the id, quotes included, or nil.
	ID []byte
	// Method is unescaped.
	Method []byte
	// Params is the span of the params object, or nil where there is none
	// (or null, which some clients send for none).
	Params []byte
	// Result is the span of a response's result, Error of its error object.
	Result, Error []byte

	// What follows is found in params, whatever the method. A member that is
	// missing, or not of the type that the protocol gives it, is nil.

	Name      []byte // unescaped string
	URI       []byte // unescaped string
	Cursor    []byte // unescaped string
	Version   []byte // protocolVersion, unescaped string
	TaskID    []byte // unescaped string
	State     []byte // requestState, unescaped string
	Arguments []byte // raw value of any type
	Responses []byte // inputResponses, raw value of any type
	Task      []byte // raw value of any type
	RequestID []byte // exact token of a string or an integer
	// ParamToken is the progressToken of a progress notification, which
	// stands in params itself; ProgressToken below is that of a request.
	ParamToken []byte

	// Meta is the span of params._meta; what follows is found in it.
	Meta               []byte
	ProgressToken      []byte // exact token of a string or an integer
	MetaVersion        []byte // unescaped string
	MetaLogLevel       []byte // unescaped string
	ClientInfo         []byte // raw object
	ClientCapabilities []byte // raw object

	// CursorPresent is set also where the cursor is no string.
	CursorPresent bool
	// MetaVersionPresent is set also where the version is no string.
	MetaVersionPresent bool
	// BadProgressToken is set where a progressToken is neither string nor integer.
	BadProgressToken bool
	// BadMeta is set where _meta is no object.
	BadMeta bool

	scratch []byte
}

// maxScratch is how many bytes of scratch space a Message keeps from one frame
// to the next, so that one frame full of escapes does not hold memory for ever.
const maxScratch = 16 << 10

// Reset forgets the last frame and keeps the scratch space, unless it is large.
func (m *Message) Reset() {
	scratch := m.scratch[:0]
	if cap(scratch) > maxScratch {
		scratch = nil
	}
	*m = Message{scratch: scratch}
}

// IsModern reports whether params._meta carries the mark of the stateless era
// (2026-07-28 and later), in which every request names its protocol version.
func (m *Message) IsModern() bool { return m.MetaVersionPresent }

// UintID gives an id that this side made, a decimal number without sign.
func (m *Message) UintID() (uint64, bool) { return ParseUint(m.ID) }

// ParseUint reads a token of up to 19 decimal digits.
func ParseUint(token []byte) (uint64, bool) {
	if len(token) == 0 || len(token) > 19 {
		return 0, false
	}
	var n uint64
	for _, c := range token {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + uint64(c-'0')
	}
	return n, true
}
