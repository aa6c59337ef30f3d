package bench

import (
	"time"

	"github.com/mcpengine/mcpengine/codec"
)

// maxRounds bounds how often one call is answered with a question.
const maxRounds = 8

// rounds makes a call of the stateless era, and makes it again with what the server wants to know, until the server
// answers or asks for what is not to be answered. once makes one request with the given params. The rounds are one call:
// it is sent when the first is, and done when the last is.
func (a *answerer) rounds(c *caller, params []byte, once func(params []byte) error) error {
	err := once(params)
	sent, first := c.reply.Sent, c.reply.FirstByte
	for n := 0; err == nil && n < maxRounds && len(a.offers) > 0; n++ {
		next := a.next(params, c.reply.Message.Result)
		if next == nil {
			return nil
		}
		time.Sleep(a.delay)
		err = once(next)
		c.reply.Sent, c.reply.FirstByte = sent, first
	}
	return err
}

// next gives the params of the request that follows a result which asks for something: all that the first had, the
// answers, and the state exactly as it came. It is nil for any other result, and where something is not to be answered.
func (a *answerer) next(params, result []byte) []byte {
	if codec.Text(result, "resultType") != "input_required" {
		return nil
	}
	out := []byte{'{'}
	codec.EachMember(params, func(name, value []byte) bool {
		out = append(append(codec.AppendString(out, name), ':'), value...)
		out = append(out, ',')
		return true
	})
	out = append(out, `"inputResponses":{`...)
	answered := true
	codec.EachMember(codec.Member(result, "inputRequests"), func(key, request []byte) bool {
		answer := a.result(codec.Text(request, "method"), codec.Member(request, "params"))
		if answered = answer != nil; !answered {
			return false
		}
		if out[len(out)-1] != '{' {
			out = append(out, ',')
		}
		out = append(append(codec.AppendString(out, key), ':'), answer...)
		return true
	})
	if !answered {
		return nil
	}
	out = append(out, '}')
	if state := codec.Member(result, "requestState"); state != nil {
		out = append(append(out, `,"requestState":`...), state...)
	}
	return append(out, '}')
}
