package bench

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

// histogramLog is what WriteHistogramLog writes.
type histogramLog struct {
	begin time.Time // of the measured window
	tags  []string  // by series number
	slots []slot
}

// histogramLog names the series of the timeline.
func (r *run) histogramLog(c *collector) histogramLog {
	l := histogramLog{begin: r.from, slots: c.times.slots}
	for _, s := range r.series {
		name := s.method
		if s.tool != "" {
			name += ":" + strings.NewReplacer(",", "_", " ", "_", "\r", "_", "\n", "_").Replace(s.tool)
		}
		l.tags = append(l.tags, name+":response", name+":service")
	}
	for o := range outcomes {
		l.tags = append(l.tags, "outcome:"+o.String()+":response")
	}
	return l
}

// WriteHistogramLog writes the measured window as an HdrHistogram log of format 1.3: one line for each interval and tag,
// in microseconds. A tag names method, tool and kind of time; what was no success is under outcome tags. The stock
// HdrHistogram tools open it; to see milliseconds there, give a ratio of 1000.
func (r *Result) WriteHistogramLog(w io.Writer) error {
	buf := bufio.NewWriter(w)
	lw := hdr.NewHistogramLogWriter(buf)
	begin := r.log.begin
	head := []error{
		lw.OutputLogFormatVersion(),
		lw.OutputComment(fmt.Sprintf("#[mcp-load %s, values in microseconds, target %s]", r.Version, clip([]byte(r.Conditions.Target)))),
		lw.OutputStartTime(begin.UnixMilli()),
		lw.OutputBaseTime(begin.UnixMilli()),
		lw.OutputLegend(),
	}
	for _, err := range head {
		if err != nil {
			return err
		}
	}
	lw.SetBaseTime(begin.UnixMilli() / 1000 * 1000) // the line above holds whole seconds
	for _, sl := range r.log.slots {
		for i, tag := range r.log.tags {
			if err := writeInterval(lw, begin, tag, &sl, sl.at(i)); err != nil {
				return err
			}
		}
	}
	return buf.Flush()
}

// writeInterval writes one line, or nothing where the slot is empty.
func writeInterval(lw *hdr.HistogramLogWriter, begin time.Time, tag string, sl *slot, buckets []bucket) error {
	if len(buckets) == 0 {
		return nil
	}
	h := newHist()
	for _, b := range buckets {
		if err := h.RecordValues(b.value, b.count); err != nil {
			return err
		}
	}
	h.SetTag(tag)
	h.SetStartTimeMs(begin.Add(sl.from).UnixMilli())
	h.SetEndTimeMs(begin.Add(sl.to).UnixMilli())
	return lw.OutputIntervalHistogram(h)
}
