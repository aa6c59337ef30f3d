package bench

import (
	"encoding/csv"
	"io"
	"strconv"
)

// csvColumns are the columns of WriteCSV, named as the members of intervals in the JSON.
var csvColumns = []string{"t_s", "rps", "errors", "p50_us", "p99_us"}

// WriteCSV writes a table with a row for each second: its begin in seconds from the begin of the measured window, successes
// a second, errors, and p50 and p99 of the response time of the successes in microseconds, empty where there was none.
// Totals and the rows by tool are in the JSON and in the Markdown.
func (r *Result) WriteCSV(w io.Writer) error {
	c := csv.NewWriter(w)
	rows := [][]string{csvColumns}
	for _, iv := range r.Intervals {
		row := []string{number(iv.TS), number(iv.RPS), strconv.FormatInt(iv.Errors, 10), "", ""}
		if iv.RPS > 0 {
			row[3], row[4] = strconv.FormatInt(iv.P50US, 10), strconv.FormatInt(iv.P99US, 10)
		}
		rows = append(rows, row)
	}
	return c.WriteAll(rows)
}

func number(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
