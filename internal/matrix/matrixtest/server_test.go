package matrixtest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"reverie/internal/matrix/matrixtest"
)

// caller is a minimal logged-in client.
type caller struct {
	t          *testing.T
	s          *matrixtest.Server
	id, token  string
	lastHeader http.Header
}

func login(t *testing.T, s *matrixtest.Server, name string) *caller {
	t.Helper()
	c := &caller{t: t, s: s, id: s.Account(name, password)}
	var got struct {
		Token string `json:"access_token"`
	}
	c.must("POST", "login", map[string]any{
		"type": "m.login.password", "identifier": map[string]string{"type": "m.id.user", "user": name}, "password": password,
	}, &got)
	c.token = got.Token
	return c
}

// call returns the status, 0 when there was no answer, and the body.
func (c *caller) call(ctx context.Context, method, path string, body any) (int, []byte) {
	c.t.Helper()
	data, err := json.Marshal(body)
	if err != nil {
		c.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.s.URL+"/_matrix/client/v3/"+path, strings.NewReader(string(data)))
	if err != nil {
		c.t.Fatal(err)
	}
	req.GetBody = nil // nothing is to be sent twice unasked
	req.Header.Set("Authorization", "Bearer "+c.token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil
	}
	defer resp.Body.Close()
	c.lastHeader = resp.Header
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, nil
	}
	return resp.StatusCode, answer
}

func (c *caller) must(method, path string, body, into any) {
	c.t.Helper()
	status, data := c.call(c.t.Context(), method, path, body)
	if status != 200 {
		c.t.Fatalf("%s %s: %d %s", method, path, status, data)
	}
	if into != nil {
		if err := json.Unmarshal(data, into); err != nil {
			c.t.Fatalf("%s %s: %v in %s", method, path, err, data)
		}
	}
}

func (c *caller) send(room, txn, text string) (int, string) {
	c.t.Helper()
	status, data := c.call(c.t.Context(), "PUT", "rooms/"+room+"/send/m.room.message/"+txn, map[string]string{"msgtype": "m.text", "body": text})
	var got struct {
		ID string `json:"event_id"`
	}
	_ = json.Unmarshal(data, &got) // no id then
	return status, got.ID
}

type synced struct {
	Next  string `json:"next_batch"`
	Rooms struct {
		Join map[string]struct {
			Timeline struct {
				Events  []json.RawMessage `json:"events"`
				Limited bool              `json:"limited"`
				Prev    string            `json:"prev_batch"`
			} `json:"timeline"`
		} `json:"join"`
	} `json:"rooms"`
	ToDevice struct {
		Events []json.RawMessage `json:"events"`
	} `json:"to_device"`
}

func (c *caller) sync(since string) synced {
	c.t.Helper()
	var got synced
	c.must("GET", "sync?since="+since, nil, &got)
	return got
}

func bodies(events []json.RawMessage) []string {
	var list []string
	for _, raw := range events {
		var e struct {
			Content struct {
				Body string `json:"body"`
			} `json:"content"`
		}
		if json.Unmarshal(raw, &e) == nil && e.Content.Body != "" {
			list = append(list, e.Content.Body)
		}
	}
	return list
}

const password = "a long enough password"

// scene creates a room with two members.
func scene(t *testing.T) (s *matrixtest.Server, you, bot *caller, room string) {
	s = matrixtest.Start(t)
	you, bot = login(t, s, "you"), login(t, s, "bot")
	return s, you, bot, s.Room(you.id, matrixtest.NewRoom{Join: []string{bot.id}})
}

func TestFaults(t *testing.T) {
	for _, c := range []struct {
		name   string
		fault  matrixtest.Fault
		status int
		events int    // in the room after the faulty request
		has    string // in the answer, or in its header
		json   bool   // the answer can be read
	}{
		{"drop", matrixtest.Drop(), 0, 0, "", false},
		{"drop the answer", matrixtest.DropAnswer(), 0, 1, "", false},
		{"500", matrixtest.Status(500, "M_UNKNOWN"), 500, 0, "M_UNKNOWN", true},
		{"500 with effect", matrixtest.AfterEffect(matrixtest.Status(500, "M_UNKNOWN")), 500, 1, "M_UNKNOWN", true},
		{"429 in the header", matrixtest.Limit(1500*time.Millisecond, 0), 429, 0, "Retry-After:[2]", true},
		{"429 in the body", matrixtest.Limit(0, 1500*time.Millisecond), 429, 0, `"retry_after_ms":1500`, true},
		{"a web page", matrixtest.HTML(), 200, 0, "<html>", false},
		{"half an answer", matrixtest.Truncate(), 200, 1, `{"event`, false},
		{"a late answer", matrixtest.DelayAnswer(time.Millisecond), 200, 1, `"event_id"`, true},
		{"late", matrixtest.Delay(time.Millisecond), 200, 1, `"event_id"`, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, you, _, room := scene(t)
			hook := s.Fault(matrixtest.On("send").By(you.id).In(room).Times(1), c.fault)
			status, data := you.call(t.Context(), "PUT", "rooms/"+room+"/send/m.room.message/t1", map[string]string{"body": "once"})
			if status != c.status || !strings.Contains(string(data)+fmt.Sprint(you.lastHeader), c.has) || json.Valid(data) != c.json {
				t.Errorf("answer %d %s %v, want %d with %q", status, data, you.lastHeader, c.status, c.has)
			}
			if got := bodies(s.Events(room)); len(got) != c.events {
				t.Errorf("events after the fault: %q, want %d", got, c.events)
			}
			status, id := you.send(room, "t1", "once")
			if got := bodies(s.Events(room)); status != 200 || id == "" || len(got) != 1 {
				t.Errorf("the same transaction again: %d %q, events %q; want one", status, id, got)
			}
			if hook.Hits() != 1 || s.Count("send") != 2 {
				t.Errorf("%d hits, %d requests; want 1 and 2", hook.Hits(), s.Count("send"))
			}
			if last := s.Sends()[len(s.Sends())-1]; last.Repeat != (c.events == 1) || last.Txn != "t1" || last.EventID != id {
				t.Errorf("log of sends: %+v", last)
			}
		})
	}
}

func TestMatch(t *testing.T) {
	s, you, bot, room := scene(t)
	hook := s.Fault(matrixtest.On("send").By(bot.id).Saying("bad").After(1).Times(2), matrixtest.Status(503, ""))
	var got []int
	for i, text := range []string{"bad 1", "good", "bad 2", "bad 3", "bad 4"} {
		status, _ := bot.send(room, fmt.Sprint(i), text)
		got = append(got, status)
	}
	status, _ := you.send(room, "x", "bad, but somebody else")
	got = append(got, status)
	if want := []int{200, 200, 503, 503, 200, 200}; !slices.Equal(got, want) {
		t.Errorf("statuses %v, want %v", got, want)
	}
	hook.Remove()
	s.Fault(matrixtest.On("send", "state"), matrixtest.Status(500, "M_UNKNOWN")).Remove()
	if status, _ := bot.send(room, "y", "bad again"); status != 200 {
		t.Errorf("after Remove: %d", status)
	}
}

func TestTimelineFaults(t *testing.T) {
	s, you, bot, room := scene(t)
	since := bot.sync("").Next
	for i := range 5 {
		you.send(room, fmt.Sprint(i), fmt.Sprint(i))
	}
	for _, c := range []struct {
		name  string
		fault matrixtest.Fault
		want  string
	}{
		{"duplicate", matrixtest.Duplicate(), "0 0 1 1 2 2 3 3 4 4"},
		{"reorder", matrixtest.Reorder(), "4 3 2 1 0"},
		{"none", nil, "0 1 2 3 4"},
	} {
		if c.fault != nil {
			s.Fault(matrixtest.On("sync").Times(1), c.fault)
		}
		if got := strings.Join(bodies(bot.sync(since).Rooms.Join[room].Timeline.Events), " "); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	s.Fault(matrixtest.On("sync").Times(1), matrixtest.LimitTimelines(2))
	gap := bot.sync(since).Rooms.Join[room].Timeline
	if got := strings.Join(bodies(gap.Events), " "); got != "3 4" || !gap.Limited {
		t.Fatalf("cut: %s, limited %v", got, gap.Limited)
	}
	var pages []string
	from := gap.Prev
	for from != "" {
		var page struct {
			Chunk []json.RawMessage `json:"chunk"`
			End   string            `json:"end"`
		}
		bot.must("GET", "rooms/"+room+"/messages?dir=b&limit=2&from="+from, nil, &page)
		pages = append(pages, strings.Join(bodies(page.Chunk), " "))
		from = page.End
	}
	if got := strings.Join(pages, "|"); !strings.HasPrefix(got, "2 1|0|") {
		t.Errorf("paged back: %s", got)
	}
	// A replay repeats an old event, and only in a sync.
	now := bot.sync(since)
	var first struct {
		ID string `json:"event_id"`
	}
	if err := json.Unmarshal(now.Rooms.Join[room].Timeline.Events[0], &first); err != nil {
		t.Fatal(err)
	}
	if err := s.Redeliver(room, first.ID); err != nil {
		t.Fatal(err)
	}
	if got := bodies(bot.sync(now.Next).Rooms.Join[room].Timeline.Events); !slices.Equal(got, []string{"0"}) {
		t.Errorf("redelivered: %q", got)
	}
	if got := bodies(s.Events(room)); len(got) != 5 {
		t.Errorf("events after a replay: %q", got)
	}
}
