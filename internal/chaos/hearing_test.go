package chaos_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"strings"
)

// wireMessage is a message as encoding/json reads it, so that the judge does not
// share the mistakes of the codec that is judged.
type wireMessage struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		ProgressToken json.RawMessage `json:"progressToken"`
		Message       string          `json:"message"`
	} `json:"params"`
	Result *struct {
		Content []struct {
			Text string `json:"text"`
		} `json:"content"`
		IsError bool `json:"isError"`
	} `json:"result"`
	Error *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// hearing is what a client hears of one request, over as many connections as it
// takes.
type hearing struct {
	party *party
	work  work
	id    string // the exact token; of the progress, too

	answer    *wireMessage
	events    map[string]bool // ids of events that came
	lastEvent string
	leaveAt   int // how many more events before the client goes away; 0 is never
}

// errLeft means that the client itself has gone away.
var errLeft = errors.New("the client went away")

// message takes one message.
func (h *hearing) message(data []byte) {
	var m wireMessage
	if err := json.Unmarshal(data, &m); err != nil {
		h.party.violate("%s: not JSON: %v: %.200q", h.work.payload, err, data)
		return
	}
	switch {
	case m.Method == "" && string(m.ID) != h.id:
		h.party.violate("%s: answer for the id %s, want %s: %.200q", h.work.payload, m.ID, h.id, data)
	case m.Method == "" && h.answer != nil:
		h.party.violate("%s: a second answer: %.200q", h.work.payload, data)
	case m.Method == "":
		h.answer = &m
	case m.Method == "notifications/progress":
		if string(m.Params.ProgressToken) != h.id || m.Params.Message != h.work.payload {
			h.party.violate("%s: another's progress: %.200q", h.work.payload, data)
		}
		if h.answer != nil {
			h.party.violate("%s: progress after the answer: %.200q", h.work.payload, data)
		}
	default:
		h.party.violate("%s: %s on the stream of a call", h.work.payload, m.Method)
	}
}

// stream takes an event stream. The error is nil where it was ended properly.
func (h *hearing) stream(body io.Reader) error {
	lines := bufio.NewReader(body)
	var data []string
	id := ""
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			if err == io.EOF && line != "" {
				err = io.ErrUnexpectedEOF
			}
			if err == io.EOF {
				return nil
			}
			return err
		}
		line = strings.TrimRight(line, "\r\n")
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "":
			h.event(id, strings.Join(data, "\n"))
			if id != "" && h.leaveAt > 0 {
				if h.leaveAt--; h.leaveAt == 0 {
					return errLeft
				}
			}
			data, id = nil, ""
		case field == "data":
			data = append(data, value)
		case field == "id":
			id = value
		}
	}
}

// event takes one event. One with a number may come once.
func (h *hearing) event(id, data string) {
	if id != "" {
		// An event without data may repeat the last number, to say when to come back.
		if h.events[id] && data != "" {
			h.party.violate("%s: event %s for the second time", h.work.payload, id)
			return
		}
		if h.events == nil {
			h.events = make(map[string]bool)
		}
		h.events[id], h.lastEvent = true, id
	}
	if data != "" {
		h.message([]byte(data))
	}
}

// verdict names the outcome of a request that was answered. ended tells that its
// session may have come to its end meanwhile.
func (h *hearing) verdict(ended bool) string {
	m := h.answer
	if m.Error != nil {
		outcome := h.work.judgeError(m.Error.Code, ended)
		if outcome == "" {
			h.party.violate("%s: %s was answered with %d %s", h.work.payload, h.work.tool, m.Error.Code, m.Error.Message)
			outcome = "wrong"
		}
		return outcome
	}
	if m.Result != nil && len(m.Result.Content) == 1 && !m.Result.IsError && h.work.isAnswer(m.Result.Content[0].Text) {
		return "ok"
	}
	h.party.violate("%s: %s was answered wrongly: %.300v", h.work.payload, h.work.tool, m.Result)
	return "wrong"
}
