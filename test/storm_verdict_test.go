package test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"
)

// verdict is called when everybody has stopped talking.
func (s *storm) verdict(t *testing.T) {
	t.Helper()
	s.settle(t)
	gone := s.takenBack(t)
	s.bot.kill()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.faults {
		t.Error(f)
	}
	// The one who asks in all rooms sees all answers.
	byNumber := map[int][]string{}
	you := s.rooms[0].asking[0].UserID()
	for id, m := range s.seen[you] {
		if gone[id] {
			continue
		}
		n := answers(m.body)
		byNumber[n] = append(byNumber[n], id)
		if m.live || n == 0 || !strings.Contains(m.body, "I can say no more about it.") {
			t.Errorf("%s stays as %q (live %v)", id, m.body, m.live)
		}
		if q := s.held[n]; n != 0 && (m.room != q.room.id || q.room.group && m.replyTo != q.event) {
			t.Errorf("%s answers question %d in %s as a reply to %q; that was asked in %s as %s", id, n, m.room, m.replyTo, q.room.id, q.event)
		}
	}
	unanswered, twice := 0, 0
	for n := 1; n <= s.asked; n++ {
		switch ids := byNumber[n]; len(ids) {
		case 0:
			unanswered++
			t.Errorf("question %d (%s, %s) has no answer", n, s.held[n].room.name, s.held[n].event)
		case 1:
		default:
			twice++
			slices.Sort(ids)
			t.Errorf("question %d (%s, %s) has %d answers: %v", n, s.held[n].room.name, s.held[n].event, len(ids), ids)
		}
	}
	s.checkTimelines(t, gone)
	for _, bad := range []string{"panic", "DATA RACE"} {
		if strings.Contains(s.bot.log.String(), bad) {
			t.Errorf("the bot's log speaks of a %s", bad)
		}
	}
	s.checkDatabase(t)
	late := strings.Count(s.bot.log.String(), "a message cannot be read yet")
	t.Logf("%d questions, %d unanswered, %d answered twice, %d faults of reading, %d read late, %d taken back; killed: %v",
		s.asked, unanswered, twice, len(s.faults), late, len(gone), s.hits)
}

// takenBack returns the bot's messages that it has taken back itself: those that
// a homeserver showed so late that they had been sent again. It waits for what is
// still there twice, as long as a homeserver may take to show it and a bit more.
func (s *storm) takenBack(t *testing.T) map[string]bool {
	t.Helper()
	for limit := time.Now().Add(time.Minute); ; time.Sleep(time.Second) {
		messages, gone := 0, map[string]bool{}
		for _, r := range s.rooms {
			for _, raw := range s.town.timeline(t, r) {
				var e struct {
					ID       string `json:"event_id"`
					Sender   string
					Type     string
					Content  map[string]json.RawMessage
					Unsigned struct {
						Because struct{ Sender string } `json:"redacted_because"`
					}
				}
				must(t, json.Unmarshal(raw, &e))
				switch {
				case e.Sender != s.botID || e.Type != "m.room.message" && e.Type != "m.room.encrypted":
				case len(e.Content) == 0 && e.Unsigned.Because.Sender == s.botID:
					gone[e.ID] = true
				case !strings.Contains(string(e.Content["m.relates_to"]), "m.replace"):
					messages++
				}
			}
		}
		if messages <= s.asked || time.Now().After(limit) {
			return gone
		}
	}
}

// checkTimelines compares what people saw with what the homeserver has: all
// questions, for each one message of the bot that is no edit, and in encrypted
// rooms nothing in the clear.
func (s *storm) checkTimelines(t *testing.T, gone map[string]bool) {
	t.Helper()
	var questions, answers int
	there := map[string]bool{}
	for _, r := range s.rooms {
		for _, raw := range s.town.timeline(t, r) {
			var e struct {
				ID      string `json:"event_id"`
				Sender  string
				Type    string
				Content struct {
					Relates struct {
						Type string `json:"rel_type"`
					} `json:"m.relates_to"`
				}
			}
			must(t, json.Unmarshal(raw, &e))
			if e.Type != "m.room.message" && e.Type != "m.room.encrypted" {
				continue
			}
			if e.Type == "m.room.message" && r.encrypted {
				t.Errorf("%s: sent in the clear: %s", r.name, raw)
			}
			there[e.ID] = true
			switch {
			case e.Sender != s.botID:
				questions++
			case e.Content.Relates.Type != "m.replace" && !gone[e.ID]:
				answers++
			}
		}
	}
	for n, q := range s.held {
		if !there[q.event] {
			t.Errorf("the homeserver has lost question %d (%s, %s), which it had acknowledged: no fault of the bot", n, q.room.name, q.event)
		}
	}
	if questions != s.asked || answers != s.asked {
		t.Errorf("%d questions were asked; the homeserver has %d, and %d messages of the bot that are no edits", s.asked, questions, answers)
	}
}
