package codec

// Bits of the members of params and of _meta, after those of the message.
const (
	seenName = 1 << (iota + 8)
	seenURI
	seenCursor
	seenArguments
	seenRequestID
	seenParamToken
	seenMeta
	seenParamVersion
	seenTaskID
	seenState
	seenResponses
	seenTask
	seenProgressToken
	seenMetaVersion
	seenMetaLogLevel
	seenClientInfo
	seenClientCapabilities
)

// params decodes the params member at v.
func (d *decoder) params(v, depth int) int {
	fresh := d.first(seenParams)
	if v < len(d.b) && d.b[v] == '{' && fresh {
		end := d.object(v, depth, inParams)
		if end > 0 {
			d.m.Params = d.b[v:end:end]
		}
		return end
	}
	end := scanValue(d.b, v, depth)
	if end > 0 && d.b[v] != 'n' {
		d.fault(errParams)
	}
	return end
}

// param decodes a member of params.
func (d *decoder) param(name []byte, v, depth int) int {
	m := d.m
	switch string(name) {
	case "name":
		return d.textInto(&m.Name, seenName, v, depth)
	case "uri":
		return d.textInto(&m.URI, seenURI, v, depth)
	case "cursor":
		m.CursorPresent = true
		return d.textInto(&m.Cursor, seenCursor, v, depth)
	case "protocolVersion":
		return d.textInto(&m.Version, seenParamVersion, v, depth)
	case "taskId":
		return d.textInto(&m.TaskID, seenTaskID, v, depth)
	case "requestState":
		return d.textInto(&m.State, seenState, v, depth)
	case "arguments":
		return d.spanInto(&m.Arguments, seenArguments, v, depth)
	case "inputResponses":
		return d.spanInto(&m.Responses, seenResponses, v, depth)
	case "task":
		return d.spanInto(&m.Task, seenTask, v, depth)
	case "requestId":
		return d.tokenInto(&m.RequestID, seenRequestID, v, depth)
	case "progressToken":
		return d.tokenInto(&m.ParamToken, seenParamToken, v, depth)
	case "_meta":
		return d.meta(v, depth)
	}
	return scanValue(d.b, v, depth)
}

// meta decodes params._meta at v.
func (d *decoder) meta(v, depth int) int {
	fresh := d.first(seenMeta)
	if v < len(d.b) && d.b[v] == '{' && fresh {
		end := d.object(v, depth, inMeta)
		if end > 0 {
			d.m.Meta = d.b[v:end:end]
		}
		return end
	}
	end := scanValue(d.b, v, depth)
	if end > 0 && d.b[v] != 'n' {
		d.m.BadMeta = true
		d.fault(errMeta)
	}
	return end
}

// metaMember decodes a member of params._meta.
func (d *decoder) metaMember(name []byte, v, depth int) int {
	m := d.m
	switch string(name) {
	case MetaProgressToken:
		end := d.tokenInto(&m.ProgressToken, seenProgressToken, v, depth)
		m.BadProgressToken = m.BadProgressToken || m.ProgressToken == nil
		return end
	case MetaProtocolVersion:
		m.MetaVersionPresent = true
		return d.textInto(&m.MetaVersion, seenMetaVersion, v, depth)
	case MetaLogLevel:
		return d.textInto(&m.MetaLogLevel, seenMetaLogLevel, v, depth)
	case MetaClientInfo:
		return d.objectInto(&m.ClientInfo, seenClientInfo, v, depth)
	case MetaClientCapabilities:
		return d.objectInto(&m.ClientCapabilities, seenClientCapabilities, v, depth)
	}
	return scanValue(d.b, v, depth)
}

func (d *decoder) textInto(to *[]byte, bit uint32, v, depth int) int {
	s, end := d.text(v, depth)
	if d.first(bit) {
		*to = s
	}
	return end
}

func (d *decoder) tokenInto(to *[]byte, bit uint32, v, depth int) int {
	token, end := d.token(v, depth)
	if d.first(bit) {
		*to = token
	}
	return end
}

func (d *decoder) spanInto(to *[]byte, bit uint32, v, depth int) int {
	end := scanValue(d.b, v, depth)
	if d.first(bit) && end > 0 {
		*to = d.b[v:end:end]
	}
	return end
}

func (d *decoder) objectInto(to *[]byte, bit uint32, v, depth int) int {
	end := scanValue(d.b, v, depth)
	if d.first(bit) && end > 0 && d.b[v] == '{' {
		*to = d.b[v:end:end]
	}
	return end
}
