package prompt

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A round asks the contributors of one request. A few askers share them, as most
// have an answer at once and would cost more to begin than to ask; when nobody
// has come back for a moment, one more asker takes over what is left, so that
// nobody waits for one that hangs.
type round struct {
	r     *request
	ctx   context.Context
	look  *looked
	queue []int        // contributors
	next  atomic.Int32 // in the queue

	mu   sync.Mutex
	came []reply       // also of the late, whom nobody waits for
	all  chan struct{} // closed when everybody came
}

func newRound(ctx context.Context, r *request, look *looked, queue []int) *round {
	return &round{r: r, ctx: ctx, look: look, queue: queue, came: make([]reply, 0, len(queue)), all: make(chan struct{})}
}

// askers is how many begin, if there are as many processors.
const askers = 4

// moment is how long nobody comes back before there is one asker more; it is a
// tenth of the deadline at most.
const moment = time.Millisecond

// slow are those that take longest: asked last, everything would wait for them.
var slow = []string{"skills", "recalled"}

func slowFirst(queue []int, contributors []contributor) {
	for _, name := range slow {
		i := slices.IndexFunc(queue, func(at int) bool { return contributors[at].Name == name })
		if i > 0 {
			at := queue[i]
			copy(queue[1:], queue[:i])
			queue[0] = at
		}
	}
}

// wait fills in who came back in time.
func (w *round) wait(replies []reply) {
	for range min(askers, runtime.GOMAXPROCS(0), len(w.queue)) {
		// go: ends with its contributors, which have a deadline; no more than maxAsked of each
		go w.run()
	}
	pause := max(min(moment, w.r.a.deadline/10), 1)
	still := time.NewTicker(pause)
	defer still.Stop()
	before := -1
	for waiting := len(w.queue) > 0; waiting; {
		select {
		case <-w.all:
			waiting = false
		case <-w.ctx.Done():
			waiting = false
		case <-still.C:
			came := w.arrived()
			if came == before && int(w.next.Load()) < len(w.queue) {
				// go: as above
				go w.run()
			}
			before = came
		}
	}
	for at, ok := w.take(); ok; at, ok = w.take() { // nobody has asked them, and nobody will
		w.r.a.asked[at].Add(-1)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, got := range w.came {
		replies[got.source] = got
	}
}

// arrived is how many came back.
func (w *round) arrived() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.came)
}

// arrive takes a reply. Who waits is woken once, by the last one: to wake costs more
// than most contributors.
func (w *round) arrive(got reply) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.came = append(w.came, got); len(w.came) == len(w.queue) {
		close(w.all)
	}
}

func (w *round) take() (at int, ok bool) {
	i := int(w.next.Add(1)) - 1
	if i >= len(w.queue) {
		return 0, false
	}
	return w.queue[i], true
}

// run asks until nobody is left.
func (w *round) run() {
	for at, ok := w.take(); ok; at, ok = w.take() {
		got := w.r.ask(w.ctx, at, w.look)
		w.r.a.asked[at].Add(-1)
		w.arrive(got)
	}
}
