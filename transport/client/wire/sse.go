package wire

import "bytes"

// Event is one server-sent event. Its slices are valid until the callback that received it returns.
type Event struct {
	Name []byte // the event field; empty means "message"
	ID   []byte // the id field of this event; nil when it had none
	Data []byte // the data lines, joined by line feeds
}

// sseParser splits a stream of bytes into events as the HTML standard's section on server-sent events says: lines end
// with LF, CR or CRLF, a leading byte order mark and comments are skipped, unknown fields are ignored. Bytes may arrive
// in any pieces. It keeps its buffers, so that in the steady state nothing is allocated.
type sseParser struct {
	limit   int    // of one line and of one event's data
	line    []byte // beginning of a line whose end has not arrived
	data    []byte
	name    []byte
	id      []byte
	ev      Event // the event being handed out; here so that it is not allocated
	hasID   bool
	hasData bool
	sawCR   bool // the last byte was CR: a following LF belongs to it
	started bool // something has arrived, so a byte order mark is no longer possible
}

// reset makes the parser ready for a new stream.
func (p *sseParser) reset(limit int) {
	p.limit = limit
	p.line = p.line[:0]
	p.sawCR, p.started = false, false
	p.clearEvent()
}

func (p *sseParser) clearEvent() {
	p.data, p.name, p.id = p.data[:0], p.name[:0], p.id[:0]
	p.hasID, p.hasData = false, false
}

// message reports whether the event carries a JSON-RPC message. An event without data only sets the id from which a
// client may resume, and events of other names are not of this protocol.
func (e *Event) message() bool {
	return len(e.Data) > 0 && (len(e.Name) == 0 || string(e.Name) == "message")
}

// feed consumes piece and calls emit for every event that it completes.
func (p *sseParser) feed(piece []byte, emit func(*Event)) error {
	for len(piece) > 0 {
		if p.sawCR {
			p.sawCR = false
			if piece[0] == '\n' {
				piece = piece[1:]
				continue
			}
		}
		end := bytes.IndexByte(piece, '\n')
		if cr := bytes.IndexByte(piece[:max(end, 0)], '\r'); cr >= 0 {
			end = cr
		} else if end < 0 {
			end = bytes.IndexByte(piece, '\r')
		}
		if end < 0 {
			if len(p.line)+len(piece) > p.limit {
				return &Error{Kind: KindProtocol, Op: "parse", Err: ErrTooLarge}
			}
			p.line = append(p.line, piece...)
			return nil
		}
		line := piece[:end]
		p.sawCR = piece[end] == '\r'
		piece = piece[end+1:]
		if len(p.line) > 0 {
			p.line = append(p.line, line...)
			line = p.line
		}
		err := p.takeLine(line, emit)
		p.line = p.line[:0]
		if err != nil {
			return err
		}
	}
	return nil
}

// takeLine interprets one complete line.
func (p *sseParser) takeLine(line []byte, emit func(*Event)) error {
	if !p.started {
		p.started = true
		line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
	}
	if len(line) == 0 {
		if p.hasData {
			p.ev = Event{Name: p.name, Data: p.data}
			if p.hasID {
				p.ev.ID = p.id
			}
			emit(&p.ev)
		}
		p.clearEvent()
		return nil
	}
	field, value, _ := bytes.Cut(line, []byte(":"))
	if len(value) > 0 && value[0] == ' ' {
		value = value[1:]
	}
	switch string(field) {
	case "data":
		if len(p.data)+len(value)+1 > p.limit {
			return &Error{Kind: KindProtocol, Op: "parse", Err: ErrTooLarge}
		}
		if p.hasData {
			p.data = append(p.data, '\n')
		}
		p.data = append(p.data, value...)
		p.hasData = true
	case "event":
		p.name = append(p.name[:0], value...)
	case "id":
		if bytes.IndexByte(value, 0) < 0 {
			p.id = append(p.id[:0], value...)
			p.hasID = true
		}
	}
	return nil
}
