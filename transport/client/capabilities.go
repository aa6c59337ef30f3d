package client

import (
	"fmt"

	"github.com/mcpengine/mcpengine/codec"
)

// ElicitModes is a set of the ways in which a client lets itself be asked for
// what its user knows (section Elicitation of the client features).
type ElicitModes uint8

const (
	// ElicitForm stands for form mode: the server sends a flat schema and gets
	// an object that matches it.
	ElicitForm ElicitModes = 1 << iota
	// ElicitURL stands for URL mode (2025-11-25): the user goes to a page of the
	// server's, and the answer only tells that the user agreed to.
	ElicitURL
)

// capabilities derives the raw capabilities from what the options hold. The
// shape is that of 2025-11-25, in which initialize is sent: the capabilities
// are open sets, so older servers skip what they do not know.
func (o *Options) capabilities() []byte {
	p := []byte{'{'}
	add := func(text string) {
		if len(p) > 1 {
			p = append(p, ',')
		}
		p = append(p, text...)
	}
	if o.OnSample != nil {
		add(`"sampling":` + flags(flag{"context", o.SampleContext}, flag{"tools", o.SampleTools}))
	}
	if o.OnElicit != nil {
		add(`"elicitation":` + flags(flag{"form", o.ElicitModes&ElicitForm != 0}, flag{"url", o.ElicitModes&ElicitURL != 0}))
	}
	if o.Roots != nil || o.RootList != nil {
		add(`"roots":{"listChanged":true}`)
	}
	sample, elicit := o.OnSample != nil && o.SampleTasks, o.OnElicit != nil && o.ElicitTasks
	if sample || elicit {
		requests := `"requests":{`
		if sample {
			requests += `"sampling":{"createMessage":{}}`
		}
		if sample && elicit {
			requests += `,`
		}
		if elicit {
			requests += `"elicitation":{"create":{}}`
		}
		add(`"tasks":{"list":{},"cancel":{},` + requests + `}}`)
	}
	return append(p, '}')
}

// flag is a member of a capability whose value is an empty object.
type flag struct {
	name string
	set  bool
}

func flags(all ...flag) string {
	s := "{"
	for _, f := range all {
		if !f.set {
			continue
		}
		if len(s) > 1 {
			s += ","
		}
		s += `"` + f.name + `":{}`
	}
	return s + "}"
}

// features is what the client has declared, as far as the revision in force
// knows it: what a server may ask for.
type features struct {
	revision string

	sampling, sampleTools                        bool
	elicitForm, elicitURL                        bool
	roots                                        bool
	taskList, taskCancel, sampleTask, elicitTask bool
}

// declared reads the features from raw capabilities, for the newest revision.
func declared(capabilities []byte) *features {
	has := func(path ...string) bool { return codec.IsObject(codec.Member(capabilities, path...)) }
	f := &features{
		revision:    revision20251125,
		sampling:    has("sampling"),
		sampleTools: has("sampling", "tools"),
		elicitForm:  has("elicitation", "form"),
		elicitURL:   has("elicitation", "url"),
		roots:       has("roots"),
		taskList:    has("tasks", "list"),
		taskCancel:  has("tasks", "cancel"),
		sampleTask:  has("tasks", "requests", "sampling", "createMessage"),
		elicitTask:  has("tasks", "requests", "elicitation", "create"),
	}
	if has("elicitation") && !f.elicitURL { // {} is the same as {"form":{}}
		f.elicitForm = true
	}
	return f
}

// in gives what is left of the features in a revision.
func (f *features) in(revision string) *features {
	n := *f
	n.revision = revision
	if revision < revision20250618 {
		n.elicitForm = false
	}
	if revision < revision20251125 {
		n.sampleTools, n.elicitURL = false, false
	}
	if revision != revision20251125 {
		n.taskList, n.taskCancel, n.sampleTask, n.elicitTask = false, false, false, false
	}
	return &n
}

// tasks reports whether the server may make tasks of any of its requests.
func (f *features) tasks() bool { return f.sampleTask || f.elicitTask }

// CapabilityError tells that a call needs a capability that was not declared in
// the handshake. Nothing was sent (the protocol allows both sides to use only
// what was negotiated).
type CapabilityError struct {
	// Capability is the path of the missing member, as "resources.subscribe".
	Capability string
	// Owner is who would have had to declare it, "server" or "client".
	Owner string
}

// Error names the capability and its owner.
func (e *CapabilityError) Error() string {
	return fmt.Sprintf("client: the %s did not declare the capability %s", e.Owner, e.Capability)
}

// needServer gives an error where the server did not declare a capability. A
// flag that is a boolean must be true.
func (c *Client) needServer(path ...string) error {
	if e := c.era.Load(); e != nil && e.blind {
		return nil // the server itself will say
	}
	v := codec.Member(c.server.Capabilities, path...)
	if codec.IsObject(v) || string(v) == "true" {
		return nil
	}
	name := path[0]
	for _, p := range path[1:] {
		name += "." + p
	}
	return &CapabilityError{Capability: name, Owner: "server"}
}
