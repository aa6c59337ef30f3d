package bench

import (
	"os"
	"slices"

	"github.com/shirou/gopsutil/v4/process"
)

// maxSampled bounds how many processes of a server are looked at every second.
const maxSampled = 256

// serverUsage follows the processor time and memory of the server's processes. A nil one follows nothing.
type serverUsage struct {
	procs    []*process.Process
	all      int     // processes there are; more than procs holds are scaled up
	cpuBegin float64 // seconds
	cpuNow   float64
	cpuRow   float64  // when the last interval ended
	rss      []uint64 // first, last and highest sum
	each     []uint64 // of the processes in the last sample, ascending
}

// serverPIDs lists the processes of the server that are known.
func (r *run) serverPIDs() []int {
	switch {
	case r.cfg.InProcess:
		return []int{os.Getpid()}
	case r.cfg.ServerPID != 0:
		return []int{r.cfg.ServerPID}
	}
	return r.set.pids()
}

// newServerUsage takes the first sample.
func newServerUsage(pids []int) *serverUsage {
	u := &serverUsage{all: len(pids)}
	for _, pid := range pids[:min(len(pids), maxSampled)] {
		if p, err := process.NewProcess(int32(pid)); err == nil {
			u.procs = append(u.procs, p)
		}
	}
	if len(u.procs) == 0 {
		return nil
	}
	u.sample()
	u.cpuBegin, u.cpuRow = u.cpuNow, u.cpuNow
	return u
}

// sample reads the counters. A process that has ended keeps what it had used.
func (u *serverUsage) sample() {
	if u == nil {
		return
	}
	var cpu float64
	var rss uint64
	each := make([]uint64, 0, len(u.procs))
	for _, p := range u.procs {
		t, err := p.Times()
		if err != nil {
			continue
		}
		m, err := p.MemoryInfo()
		if err != nil {
			continue
		}
		each = append(each, m.RSS)
		cpu += t.User + t.System
		rss += m.RSS
	}
	if len(each) == 0 {
		return
	}
	slices.Sort(each)
	u.each = each
	scale := float64(u.all) / float64(len(u.procs))
	u.cpuNow = max(u.cpuNow, cpu*scale)
	rss = uint64(float64(rss) * scale)
	if u.rss == nil {
		u.rss = []uint64{rss, rss, rss}
	}
	u.rss[1], u.rss[2] = rss, max(u.rss[2], rss)
}

// interval gives the cores used since the last interval, which was so many seconds ago, and the bytes resident.
func (u *serverUsage) interval(seconds float64) (cores float64, rss uint64) {
	if u == nil || u.rss == nil {
		return 0, 0
	}
	cores = round((u.cpuNow-u.cpuRow)/seconds, 4)
	u.cpuRow = u.cpuNow
	return cores, u.rss[1]
}

// result describes what was used since the first sample.
func (u *serverUsage) result() *Server {
	if u == nil || u.rss == nil {
		return nil
	}
	rss := slices.Clone(u.rss)
	return &Server{
		PID: int(u.procs[0].Pid), Processes: u.all, CPUSeconds: round(u.cpuNow-u.cpuBegin, 3),
		RSSStartBytes: rss[0], RSSEndBytes: rss[1], RSSPeakBytes: rss[2],
		RSSProcess: RSSProcess{u.each[0], u.each[len(u.each)/2], u.each[len(u.each)-1]},
	}
}
