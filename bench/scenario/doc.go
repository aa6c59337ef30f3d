// Package scenario reads scenarios: YAML files that say which flows an agent takes through what an MCP server offers,
// and with which load. A scenario names no target, so the same file serves for every deployment of a server.
//
//	load: {users: 20, think-time: exp:2s, duration: 1m}
//	thresholds: [p(99)<200ms, errors<0.1%]
//	data: {people: people.csv}
//	flows:
//	  - name: look up
//	    weight: 3
//	    steps:
//	      - call: search
//	        arguments: {query: "${people.name}"}
//	        expect: {contains: "${people.name}"}
//	        extract: {id: /structuredContent/hits/0/id}
//	      - think: 500ms
//	      - read: "file:///${id}"
//	  - name: watch
//	    steps:
//	      - subscribe: file:///log
//	      - call: append
//	      - {wait: notifications/resources/updated, uri: file:///log, timeout: 5s}
//
// Schema is the JSON Schema of the format. Everything that is wrong with a file is told with its line and column and
// what was expected there. What flows and their steps mean is documented at bench.Flow and bench.Step.
package scenario
