package bench

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
)

// The elements of a JUnit report that Jenkins and GitLab read. Their order is that of the common schema.
type (
	junitSuites struct {
		XMLName  xml.Name   `xml:"testsuites"`
		Name     string     `xml:"name,attr"`
		Tests    int        `xml:"tests,attr"`
		Failures int        `xml:"failures,attr"`
		Errors   int        `xml:"errors,attr"`
		Time     string     `xml:"time,attr"`
		Suite    junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name       string          `xml:"name,attr"`
		Tests      int             `xml:"tests,attr"`
		Failures   int             `xml:"failures,attr"`
		Errors     int             `xml:"errors,attr"`
		Skipped    int             `xml:"skipped,attr"`
		Time       string          `xml:"time,attr"`
		Timestamp  string          `xml:"timestamp,attr"`
		Properties []junitProperty `xml:"properties>property"`
		Cases      []junitCase     `xml:"testcase"`
		Out        junitText       `xml:"system-out"`
	}
	junitProperty struct {
		Name  string `xml:"name,attr"`
		Value string `xml:"value,attr"`
	}
	junitCase struct {
		Class   string        `xml:"classname,attr"`
		Name    string        `xml:"name,attr"`
		Time    string        `xml:"time,attr"`
		Error   *junitTrouble `xml:"error"`
		Failure *junitTrouble `xml:"failure"`
	}
	junitText struct {
		Text string `xml:",cdata"`
	}
	junitTrouble struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr"`
		Text    string `xml:",chardata"`
	}
)

// WriteJUnit writes the verdict and the thresholds as test cases of a JUnit report. A threshold that was crossed is a
// failure; a result that is not valid, or of a run that did not come to its end, is an error of the case "valid".
func (r *Result) WriteJUnit(w io.Writer) error {
	seconds := number(r.Conditions.DurationS)
	class := "mcp-load." + strings.NewReplacer(".", "_", " ", "_").Replace(r.Conditions.Protocol)
	s := junitSuite{Name: "mcp-load", Time: seconds, Timestamp: r.Started.UTC().Format("2006-01-02T15:04:05")}
	s.add(junitCase{Class: class, Name: "valid", Time: seconds, Error: r.junitError()})
	for i := range r.Thresholds {
		t := &r.Thresholds[i]
		c := junitCase{Class: class, Name: t.Expr, Time: "0"}
		if !t.OK {
			text := fmt.Sprintf("%s was crossed: %s", t.Expr, t.valueText())
			c.Failure = &junitTrouble{Message: text, Type: "threshold", Text: text}
		}
		s.add(c)
	}
	s.Properties = []junitProperty{
		{"target", r.Conditions.Target}, {"transport", r.Conditions.Transport}, {"protocol", r.Conditions.Protocol},
		{"load", r.Conditions.LoadText()}, {"sessions", fmt.Sprint(r.Conditions.Sessions)}, {"duration_s", seconds},
		{"seed", fmt.Sprint(r.Conditions.Seed)}, {"delivered_rps", number(r.Verdict.DeliveredRPS)},
		{"completed_rps", number(r.Verdict.CompletedRPS)}, {"requests", fmt.Sprint(r.Requests.Total)},
		{"errors", fmt.Sprint(r.Requests.Total - r.Requests.OK)},
	}
	var text strings.Builder
	if err := r.WriteSummary(&text, false); err != nil {
		return err
	}
	s.Out.Text = text.String()
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(junitSuites{
		Name: s.Name, Tests: s.Tests, Failures: s.Failures, Errors: s.Errors, Time: seconds, Suite: s,
	}); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// add appends a case and counts it.
func (s *junitSuite) add(c junitCase) {
	s.Tests++
	if c.Failure != nil {
		s.Failures++
	}
	if c.Error != nil {
		s.Errors++
	}
	s.Cases = append(s.Cases, c)
}

// junitError says why the result cannot be relied on; nil where it can.
func (r *Result) junitError() *junitTrouble {
	var why []string
	kind := "invalid"
	if !r.Verdict.Valid {
		why = append(why, "INVALID: "+strings.Join(r.Verdict.Reasons, "; "))
	}
	if r.Ended != "" {
		kind, why = "ended", append(why, r.Ended)
	}
	if r.Interrupted {
		kind, why = "interrupted", append(why, "the run was interrupted")
	}
	if len(why) == 0 {
		return nil
	}
	text := strings.Join(why, "; ")
	return &junitTrouble{Message: text, Type: kind, Text: text}
}
