package bench

import (
	"encoding/json"
	"time"

	"github.com/mcpengine/mcpengine/codec"
)

// Flow is a way that an agent takes through what a server offers: steps, one after another, on one session. With
// Config.Flows, what the schedule starts, or a user does between two thoughts, is not a call but a flow, chosen by
// weight. The first call of a flow is due when the flow is; every later one is due at the end of the step before it
// plus the think time between them, and its response time counts from then.
//
// A flow ends before its last step where a call fails, an answer is not what its step expects, a value is not found, or
// a notification does not come.
type Flow struct {
	Name   string // unique among the flows of a run
	Weight int    // at least 1; its share relative to the other flows
	Steps  []Step // at least one calls or waits
}

// Step is one step of a flow. It thinks, then sends a request (Method), or waits for a notification (Await), or does no
// more. Texts that are called templates may hold ${NAME}, which stands for the value of a variable: one that an earlier
// step has extracted, DATA.COLUMN of a row of Config.Data, or "instance", the number of the flow counted from 0; $${ is
// ${ itself.
type Step struct {
	Where string // how messages name the step; empty for its flow and number
	Think Think  // before anything else

	Method    string          // of the request; one of StepMethods, or empty
	Tool      string          // of tools/call; no template, so that it is known before the run what is called
	Prompt    string          // of prompts/get
	URI       string          // of resources/read, subscribe and unsubscribe: a template
	Cursor    string          // of a list: a template; empty for the first page
	Arguments json.RawMessage // of tools/call and prompts/get: an object whose strings are templates

	// CancelAfter, where it is not 0, cancels a call that has no answer by then. Such a call counts as cancelled, which
	// is no error, and the flow goes on.
	CancelAfter time.Duration

	Expect  Expect
	Extract []Extraction

	Await *Await // instead of a Method
}

// StepMethods are the methods that a step can send.
var StepMethods = []string{
	codec.MethodToolsCall, codec.MethodToolsList, codec.MethodResourcesList, codec.MethodResourceTemplatesList,
	codec.MethodResourcesRead, codec.MethodResourcesSubscribe, codec.MethodResourcesUnsubscribe, codec.MethodPromptsList,
	codec.MethodPromptsGet, codec.MethodPing,
}

// Expect is what the answer to a step's request has to be. What it says decides over the outcome: an answer that is as
// expected is a success, also where it has isError and that is expected; any other counts as a tool error.
type Expect struct {
	IsError  *bool    // nil is the same as false
	Contains []string // templates; each has to be part of one of the strings of the result
}

// Extraction takes a value out of a result.
type Extraction struct {
	Name string // of the variable
	Path string // JSON Pointer such as /content/0/text, or the same as content[0].text
}

// Await waits for a notification of the session that has come since the flow began and that no earlier step has taken.
// Over HTTP that needs the GET stream of the session, which is opened for runs with such flows.
type Await struct {
	Method  string        // such as notifications/resources/updated
	URI     string        // template: where it is not empty, the params.uri that the notification must have
	Timeout time.Duration // default Config.Timeout
}

// DataSet is rows that flows take values from. An instance of a flow that names the set takes one row.
type DataSet struct {
	Name    string
	Columns []string
	Rows    [][]json.RawMessage // of the columns' length; what is nil is not set in that row, and reads as null
	Random  bool                // a row by chance, else one after another and again from the first
}

// talks reports whether a step does more than think.
func (s *Step) talks() bool { return s.Method != "" || s.Await != nil }

// listens reports whether any of the flows waits for notifications.
func (c *Config) listens() bool {
	for _, f := range c.Flows {
		for i := range f.Steps {
			if f.Steps[i].Await != nil {
				return true
			}
		}
	}
	return false
}
