package main

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"reverie/internal/matrix/peer"
	"reverie/internal/memory"
)

// TestTheLastTalkOfADay: what is said ten minutes before a dream is read by it, and holds in the
// morning in the place of what was said before; the owner is told. !dream reads what was said just now, too.
func TestTheLastTalkOfADay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDayWith(t, http.HandlerFunc(judge), func(c *Config) {
			c.LLM.Models = []ModelConfig{{Name: "judge", BaseURL: "http://model.test/v1", Model: "judge"}}
			c.Harvest.Calls = 500
			c.Dreaming = DreamingConfig{Schedule: "30 3 * * *", Notice: true}
		})
		began := time.Now()
		ann := d.person("ann")
		room := d.room(ann, peer.Room{Name: "Ann", Direct: true, Encrypted: true, Invite: []string{d.bot}})
		say := func(after time.Duration, text string) {
			sleepUntil(t.Context(), began.Add(after))
			_, err := ann.Say(t.Context(), room, text)
			must(d.t, err)
		}
		known := func(states ...memory.State) string {
			t.Helper()
			all, err := d.parts.memory.List(t.Context(), memory.Access{All: true}, memory.Filter{States: states})
			must(d.t, err)
			var texts []string
			for _, e := range all {
				texts = append(texts, e.Text)
			}
			return strings.Join(texts, ", ")
		}
		say(at(1, 0), "Jana lives in Berlin. Jana likes green tea. Jana plays tennis.")
		say(at(3, 20), "Jana moved to Hamburg.")
		sleepUntil(t.Context(), began.Add(at(3, 29)))
		if got := known(memory.Active); strings.Contains(got, "Hamburg") || !strings.Contains(got, "Berlin") {
			t.Fatalf("known before the dream: %s", got)
		}
		sleepUntil(t.Context(), began.Add(at(3, 34))) // a minute before it would be read by itself
		if got := known(memory.Active); !strings.Contains(got, "Jana moved to Hamburg") || strings.Contains(got, "Berlin") {
			t.Errorf("known in the morning: %s", got)
		}
		if got := known(memory.Superseded); got != "Jana lives in Berlin" {
			t.Errorf("superseded: %s", got)
		}
		say(at(5, 0), "Jana plays chess.")
		say(at(5, 1), "!dream")
		sleepUntil(t.Context(), began.Add(at(5, 5)))
		if got := known(memory.Active); !strings.Contains(got, "chess") {
			t.Errorf("known after !dream: %s", got)
		}
		if !ann.told("messages: 1, new facts: 1") || !ann.told("1 superseded") {
			t.Errorf("the owner heard %q", ann.notices)
		}
	})
}
