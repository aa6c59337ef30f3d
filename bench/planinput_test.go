package bench

import (
	"fmt"
	"math"
	"testing"
)

// TestReadMeasuredOrder: the memory beside the sessions is the same, whichever file is named first.
func TestReadMeasuredOrder(t *testing.T) {
	capacity := fmt.Appendf(nil, `{"schema":%q,"conditions":{"sessions":1000,"duration_s":10},"verdict":{"completed_rps":100},
		"server":{"cpu_s":1,"rss_peak_bytes":30000000},"capacity":{"find":"rate","rate_rps":100,"failed_at":101}}`, Schema)
	sessions := fmt.Appendf(nil, `{"schema":%q,"session_capacity":{"bytes_per_session":10000}}`, Schema)
	for _, tt := range []struct {
		name  string
		files [][]byte
	}{
		{"sessions last", [][]byte{capacity, sessions}},
		{"sessions first", [][]byte{sessions, capacity}},
	} {
		m, _, err := ReadMeasured(tt.files...)
		if err != nil || math.Abs(m.BaseBytes-20e6) > 1 || m.BytesPerSession != 10000 || m.RateRPS != 100 {
			t.Errorf("ReadMeasured, %s: got %+v, %v; want 20 MB beside sessions of 10,000 bytes, 100/s", tt.name, m, err)
		}
	}
}
