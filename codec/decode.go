package codec

// Bits of the members that have been seen, to refuse one that occurs twice.
const (
	seenVersion = 1 << iota
	seenID
	seenMethod
	seenParams
	seenResult
	seenError
)

// Faults of frames that are JSON but no message. They are values, so that a
// flood of bad frames costs no memory.
var (
	errSyntax        = NewError(CodeParseError, "Parse error: not valid JSON")
	errTooDeep       = NewError(CodeInvalidRequest, "Invalid Request: nested too deep")
	errNotObject     = NewError(CodeInvalidRequest, "Invalid Request: a message is a JSON object")
	errBatch         = NewError(CodeInvalidRequest, "Invalid Request: batches are not allowed here")
	errVersion       = NewError(CodeInvalidRequest, `Invalid Request: jsonrpc must be "2.0"`)
	errID            = NewError(CodeInvalidRequest, "Invalid Request: id must be a string or an integer")
	errMethod        = NewError(CodeInvalidRequest, "Invalid Request: method must be a string")
	errShape         = NewError(CodeInvalidRequest, "Invalid Request: neither a request, a notification nor a response")
	errResultOrError = NewError(CodeInvalidRequest, "Invalid Request: a response has a result or an error, not both")
	errDuplicate     = NewError(CodeInvalidRequest, "Invalid Request: a member occurs twice")
	errParams        = NewError(CodeInvalidParams, "Invalid params: params must be an object")
	errMeta          = NewError(CodeInvalidParams, "Invalid params: _meta must be an object")
	errNotArray      = NewError(CodeInvalidRequest, "Invalid Request: a batch is a JSON array")
	errEmptyBatch    = NewError(CodeInvalidRequest, "Invalid Request: empty batch")
)

// Decode reads one frame into m. The error, if any, is an *Error with the code
// to answer: -32700 where the frame is not JSON, -32600 where it is no message
// of JSON-RPC 2.0, -32602 where params is not an object. Even then m.Kind and
// m.ID are set as far as they could be told, so that the caller can answer
// under the right id and does not answer a notification. A byte order mark
// before the object is skipped.
func Decode(frame []byte, m *Message) error {
	m.Reset()
	i := skipHead(frame)
	if i < len(frame) && frame[i] == '{' {
		d := decoder{b: frame, m: m}
		return d.message(i)
	}
	switch end := scanValue(frame, i, MaxDepth); {
	case end == scanDeep:
		return errTooDeep
	case end < 0 || skipSpace(frame, end) != len(frame):
		return errSyntax
	case frame[i] == '[':
		return errBatch
	}
	return errNotObject
}

// decoder holds the state of one Decode.
type decoder struct {
	b    []byte
	m    *Message
	seen uint32
	bad  *Error // the gravest fault that is not one of syntax
	null bool   // the id is null
}

// fault keeps the first fault of the message, or else the first of its params:
// params do not matter where there is no request to have them.
func (d *decoder) fault(e *Error) {
	if d.bad == nil || d.bad.Code == CodeInvalidParams && e.Code == CodeInvalidRequest {
		d.bad = e
	}
}

// message decodes the object that begins at i and everything in it.
func (d *decoder) message(i int) error {
	end := d.object(i, MaxDepth, inMessage)
	if end < 0 || skipSpace(d.b, end) != len(d.b) {
		d.m.Reset()
		if end == scanDeep {
			return errTooDeep
		}
		return errSyntax
	}
	d.classify()
	if d.bad != nil {
		return d.bad
	}
	return nil
}

// classify tells the kind from the members that were seen.
func (d *decoder) classify() {
	m := d.m
	if d.seen&seenVersion == 0 {
		d.fault(errVersion)
	}
	answers := d.seen & (seenResult | seenError)
	switch {
	case d.seen&seenMethod != 0:
		if d.seen&seenID == 0 {
			m.Kind = KindNotification
		} else {
			m.Kind = KindRequest
		}
		if m.Method == nil {
			m.Kind = KindInvalid
		}
		if answers != 0 {
			d.fault(errShape)
		}
		if d.null {
			d.fault(errID)
		}
	case answers == seenResult|seenError:
		d.fault(errResultOrError)
	case answers == seenResult && m.ID != nil:
		m.Kind = KindResponse
	case answers == seenError && (m.ID != nil || d.null || d.seen&seenID == 0):
		m.Kind = KindError
	default:
		d.fault(errShape)
	}
}

// The objects whose members have a meaning. A plain number and not a function
// value, so that the decoder stays on the stack.
const (
	inMessage = iota
	inParams
	inMeta
)

// object walks the members of the object at i, and gives the index after it.
// Three levels at most are walked here, so that depth is never used up.
func (d *decoder) object(i, depth, where int) int {
	b := d.b
	i = skipSpace(b, i+1)
	if i < len(b) && b[i] == '}' {
		return i + 1
	}
	for {
		if i >= len(b) || b[i] != '"' {
			return scanBad
		}
		end, escaped := scanString(b, i)
		if end < 0 {
			return scanBad
		}
		name := b[i+1 : end-1]
		if escaped {
			name = d.unescape(name)
		}
		if i = skipSpace(b, end); i >= len(b) || b[i] != ':' {
			return scanBad
		}
		i = skipSpace(b, i+1)
		switch where {
		case inMessage:
			i = d.member(name, i, depth-1)
		case inParams:
			i = d.param(name, i, depth-1)
		default:
			i = d.metaMember(name, i, depth-1)
		}
		if i < 0 {
			return i
		}
		if i = skipSpace(b, i); i >= len(b) {
			return scanBad
		}
		switch b[i] {
		case '}':
			return i + 1
		case ',':
			i = skipSpace(b, i+1)
		default:
			return scanBad
		}
	}
}

// unescape puts the unescaped form of a string's inside into the scratch space.
func (d *decoder) unescape(s []byte) []byte {
	start := len(d.m.scratch)
	d.m.scratch = AppendUnescaped(d.m.scratch, s)
	return d.m.scratch[start:len(d.m.scratch):len(d.m.scratch)]
}

// first marks a member as seen, and refuses it where it had been.
func (d *decoder) first(bit uint32) bool {
	if d.seen&bit != 0 {
		d.fault(errDuplicate)
		return false
	}
	d.seen |= bit
	return true
}

// member decodes a member of the message itself.
func (d *decoder) member(name []byte, v, depth int) int {
	m := d.m
	switch string(name) {
	case "jsonrpc":
		s, end := d.text(v, depth)
		if d.first(seenVersion) && string(s) != "2.0" {
			d.fault(errVersion)
		}
		return end
	case "id":
		token, end := d.token(v, depth)
		if d.first(seenID) && end > 0 {
			m.ID = token
			d.null = token == nil && d.b[v] == 'n'
			if token == nil && !d.null {
				d.fault(errID)
			}
		}
		return end
	case "method":
		s, end := d.text(v, depth)
		if d.first(seenMethod) {
			if m.Method = s; s == nil {
				d.fault(errMethod)
			}
		}
		return end
	case "params":
		return d.params(v, depth)
	case "result":
		end := scanValue(d.b, v, depth)
		if d.first(seenResult) && end > 0 {
			m.Result = d.b[v:end]
		}
		return end
	case "error":
		end := scanValue(d.b, v, depth)
		if d.first(seenError) && end > 0 {
			if m.Error = d.b[v:end]; d.b[v] != '{' {
				d.fault(errShape)
			}
		}
		return end
	}
	return scanValue(d.b, v, depth)
}

// text scans a value; it gives the unescaped string where it is one, else nil.
func (d *decoder) text(v, depth int) (s []byte, end int) {
	if v >= len(d.b) || d.b[v] != '"' {
		return nil, scanValue(d.b, v, depth)
	}
	end, escaped := scanString(d.b, v)
	if end < 0 {
		return nil, scanBad
	}
	s = d.b[v+1 : end-1 : end-1]
	if escaped {
		s = d.unescape(s)
	}
	return s, end
}

// token scans a value; it gives its exact bytes where it is a string or is
// written as an integer, else nil.
func (d *decoder) token(v, depth int) (token []byte, end int) {
	if v >= len(d.b) {
		return nil, scanBad
	}
	switch c := d.b[v]; {
	case c == '"':
		if end, _ = scanString(d.b, v); end < 0 {
			return nil, scanBad
		}
		return d.b[v:end:end], end
	case c == '-' || '0' <= c && c <= '9':
		end, integer := scanNumber(d.b, v)
		if end < 0 || !integer {
			return nil, end
		}
		return d.b[v:end:end], end
	}
	return nil, scanValue(d.b, v, depth)
}
