package mock

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Service is the distribution of the service time S of a tool call. The zero value is S = 0.
//
//	constant:     S = Mean
//	exponential:  P(S > x) = exp(−x/Mean), drawn from Model.Seed in the order of arrival
type Service struct {
	Mean        time.Duration
	Exponential bool
}

// ParseService reads a constant time such as 1ms, or exp:5ms for the exponential distribution of that mean.
func ParseService(text string) (Service, error) {
	number, exponential := strings.CutPrefix(text, "exp:")
	mean, err := time.ParseDuration(number)
	if err != nil || mean < 0 || exponential && mean == 0 {
		return Service{}, fmt.Errorf("service time %q: give a time such as 1ms, or exp:5ms for exponential times of that mean", text)
	}
	return Service{Mean: mean, Exponential: exponential}, nil
}

// USL is the service time of the universal scalability law. A call that arrives as the n-th in the system (those that
// have not departed and itself) takes
//
//	S(n) = (1 + σ(n−1) + κn(n−1)) / λ
//
// without waiting for a server. A closed loop of n callers without think time keeps n calls in the system, so each takes
// S(n), and the throughput is the law itself:
//
//	X(n) = n / S(n) = λn / (1 + σ(n−1) + κn(n−1))
//
// What a call needs on its way to the server and back, t, is think time: the callers see X = n / (S + t). At λ ≤ 50/s a
// t of 0.2 ms is below 1 %. The zero value is no law.
type USL struct {
	Lambda float64 // calls a second of one caller
	Sigma  float64 // contention
	Kappa  float64 // coherency
}

// ParseUSL reads LAMBDA,SIGMA,KAPPA such as 50,0.05,0.001.
func ParseUSL(text string) (USL, error) {
	wrong := fmt.Errorf("scalability law %q: give LAMBDA,SIGMA,KAPPA such as 50,0.05,0.001 (calls a second, contention, coherency)", text)
	fields := strings.Split(text, ",")
	if len(fields) != 3 {
		return USL{}, wrong
	}
	var values [3]float64
	for i, field := range fields {
		v, err := strconv.ParseFloat(field, 64)
		if err != nil || math.IsNaN(v) || v < 0 || v > 1e9 {
			return USL{}, wrong
		}
		values[i] = v
	}
	u := USL{Lambda: values[0], Sigma: values[1], Kappa: values[2]}
	if u.Lambda == 0 {
		return USL{}, wrong
	}
	return u, nil
}

// Service gives S(n).
func (u USL) Service(n int) time.Duration {
	k := float64(n)
	seconds := (1 + u.Sigma*(k-1) + u.Kappa*k*(k-1)) / u.Lambda
	return time.Duration(math.Round(seconds * 1e9))
}

// Throughput gives X(n), calls a second.
func (u USL) Throughput(n int) float64 { return float64(n) / u.Service(n).Seconds() }

// ParseRate reads a rate such as 300, 300/s or 6000/m and gives calls a second.
func ParseRate(text string) (float64, error) {
	number, per := text, 1.0
	if n, ok := strings.CutSuffix(text, "/s"); ok {
		number = n
	} else if n, ok := strings.CutSuffix(text, "/m"); ok {
		number, per = n, 60
	}
	rate, err := strconv.ParseFloat(number, 64)
	rate /= per
	if err != nil || math.IsNaN(rate) || rate < 1e-6 || rate > 1e9 {
		return 0, fmt.Errorf("rate %q: give calls a second or a minute, such as 300/s or 6000/m", text)
	}
	return rate, nil
}

// Model says when tool calls depart. The zero value answers at once.
//
// A call arrives at A. It first takes a token (TokenBucket), then a server (Servers), which holds it for S (Service or
// USL), and leaves then unless the server is stalled (StallAt, StallFor):
//
//	token    G_i = max(A_i, G_(i−1) + 1/r)      r = TokenBucket, burst 1, first in first out, refuses nobody
//	begin    B_i = max(G_i, the instant at which the first of the servers is free)
//	due      D_i = B_i + S_i
//	stall    D_i = e where b ≤ D_i < e          b = first arrival + StallAt, e = b + StallFor
//
// All of it is computed on the intended instants: a departure that a busy machine makes late does not delay the next.
// The stall holds back answers, and a server is not free before its call has left: whatever arrives or is due in the
// stall waits for its end. A caller that gives up does not shorten the queue.
type Model struct {
	Service Service
	Servers int // calls served at once; 0 means no limit
	USL     USL // in place of Service and Servers

	TokenBucket float64 // tokens a second; 0 means no bucket

	StallAt  time.Duration // after the first tool call
	StallFor time.Duration // 0 means no stall

	Seed uint64 // of the exponential service times
}

// Check refuses what cannot be meant.
func (m *Model) Check() error {
	switch {
	case m.USL != USL{} && (m.Service != Service{} || m.Servers != 0 || m.TokenBucket != 0):
		return fmt.Errorf("--usl is the whole of the service model: leave out --service, --servers and --token-bucket")
	case m.Servers < 0:
		return fmt.Errorf("--servers cannot be negative (0 means no limit)")
	case m.Servers > 0 && m.Service.Mean == 0:
		return fmt.Errorf("--servers needs a --service time: %d servers that need no time are as good as any number", m.Servers)
	case m.Servers > maxServers:
		return fmt.Errorf("--servers can be at most %d (0 means no limit)", maxServers)
	case m.StallAt < 0 || m.StallFor < 0:
		return fmt.Errorf("--stall-at and --stall-for cannot be negative")
	case m.StallAt > 0 && m.StallFor == 0:
		return fmt.Errorf("--stall-at needs --stall-for, how long the stall lasts")
	}
	return nil
}
