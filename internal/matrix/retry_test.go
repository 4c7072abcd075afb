package matrix

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"maunium.net/go/mautrix"
)

// Waiting grows and is not the same for everybody.
// Holds F1.
func TestBackoffGrowsWithJitter(t *testing.T) {
	for attempt := range 12 {
		longest := min(time.Second<<attempt, maxWait)
		seen := map[time.Duration]bool{}
		for range 50 {
			d := backoff(attempt)
			if d < longest/2 || d > longest {
				t.Fatalf("backoff(%d) = %s, want between %s and %s", attempt, d, longest/2, longest)
			}
			seen[d] = true
		}
		if len(seen) < 10 {
			t.Errorf("backoff(%d) is one of %d values", attempt, len(seen))
		}
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// No poll may hang for three minutes, whatever came before it.
// Holds F3.
func TestEveryPollIsWatched(t *testing.T) {
	for _, c := range []struct {
		name     string
		since    string
		failures int64
	}{{"as usual", "s1", 0}, {"the first", "", 0}, {"after a failure", "s1", 1}, {"after many", "s1", 1000}} {
		t.Run(c.name, func(t *testing.T) {
			client, err := mautrix.NewClient("http://homeserver.test", "@b:homeserver.test", "token")
			must(t, err)
			client.Client.Timeout = 0 // the library's own limit is not what this is about
			var until time.Time
			client.Client.Transport = roundTrip(func(r *http.Request) (*http.Response, error) {
				until, _ = r.Context().Deadline()
				return nil, errors.New("enough")
			})
			x := &Client{cli: client, pace: normalPace}
			x.failures.Store(c.failures)
			if _, err := x.poll(context.Background(), c.since, "1"); err == nil {
				t.Error("no error")
			}
			if left := time.Until(until); left <= normalPace.poll || left >= 3*time.Minute {
				t.Errorf("it is cut after %s, want more than the poll's %s and less than three minutes", left, normalPace.poll)
			}
		})
	}
}
