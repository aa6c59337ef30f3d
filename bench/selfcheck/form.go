package selfcheck

import "time"

// Form is how thorough a self-test is.
type Form string

const (
	// Quick takes about 20 seconds; what needs more samples than that gives is left out.
	Quick Form = "quick"
	// Short takes less than 90 seconds.
	Short Form = "short"
	// Full has oracles 1 and 2 in their full length: about six minutes.
	Full Form = "full"
)

// form is the lengths of a Form.
type form struct {
	noise  time.Duration // of the run that measures the noise floor
	trial  time.Duration // of one rate
	halves int           // of the bracket around the highest rate
	first  float64       // of the rates
	factor float64       // from one rate to the next

	stallWindow, stallAt, stallFor time.Duration

	queueRate, arrivalRate float64 // of the M/M/1 queue, a second
	queueFor               time.Duration

	idle time.Duration // after which a session expires

	limit time.Duration // an oracle that does not pass is tried once more where that ends before
}

var forms = map[Form]*form{
	Quick: {
		noise: time.Second, trial: 500 * time.Millisecond, first: 2000, factor: 4, limit: 18 * time.Second,
		stallWindow: 4 * time.Second, stallAt: 2 * time.Second, stallFor: 400 * time.Millisecond,
		queueRate: 400, arrivalRate: 200, queueFor: 3 * time.Second,
		idle: 500 * time.Millisecond,
	},
	Short: {
		noise: 4 * time.Second, trial: time.Second, halves: 2, first: 500, factor: 2, limit: 80 * time.Second,
		stallWindow: 12 * time.Second, stallAt: 6 * time.Second, stallFor: time.Second,
		queueRate: 400, arrivalRate: 200, queueFor: 15 * time.Second,
		idle: time.Second,
	},
	Full: {
		noise: 10 * time.Second, trial: 2 * time.Second, halves: 3, first: 500, factor: 2, limit: 8 * time.Minute,
		stallWindow: time.Minute, stallAt: 30 * time.Second, stallFor: time.Second,
		queueRate: 200, arrivalRate: 160, queueFor: 4 * time.Minute,
		idle: time.Second,
	},
}
