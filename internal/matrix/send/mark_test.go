package send

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"maunium.net/go/mautrix"
	"maunium.net/go/mautrix/event"

	"reverie/internal/test/expect"
)

// Only the bot's own events say what it has sent; what others write into theirs is ignored, and so is what makes no sense.
func TestCarried(t *testing.T) {
	s := &Sender{Config: Config{Client: &mautrix.Client{UserID: "@bot:b"}}}
	var events []*event.Event
	add := func(id, sender, content string) {
		evt := &event.Event{}
		expect.OK(t, json.Unmarshal([]byte(fmt.Sprintf(`{"event_id": %q, "sender": %q, "type": "m.room.encrypted", "origin_server_ts": 5, "content": %s}`,
			id, sender, content)), evt))
		events = append(events, evt)
	}
	const me, you = "@bot:b", "@you:b"
	add("$q", you, `{}`)
	add("$forged", you, `{"reverie.message": {"id": "re:$q", "revision": 1, "answers": ["$q"]}}`)
	add("$draft", me, `{"reverie.message": {"id": "re:$q", "notice": true}}`)
	add("$edit", me, `{"reverie.message": {"id": "re:$q", "revision": 1, "answers": ["$q", "$unknown"]}, "m.relates_to": {"rel_type": "m.replace", "event_id": "$draft"}}`)
	add("$file", me, `{"reverie.message": {"id": "f", "revision": 1, "file": true}, "m.relates_to": {"rel_type": "m.thread", "event_id": "$root"}}`)
	add("$plain", me, `{"body": "of an earlier release"}`)
	add("$odd", me, `{"reverie.message": [1]}`)
	add("$long", me, `{"reverie.message": {"id": "x", "revision": 1, "answers": [`+strings.Repeat(`"$a",`, 1000)+`"$a"]}}`)
	rows, answers := s.Carried("!r", events)
	var seen []string
	for _, r := range rows {
		seen = append(seen, fmt.Sprint(r.ID, " ", r.EventID, " ", r.Revision, " ", r.Kind, r.File, r.Thread))
	}
	expect.Equal(t, strings.Join(seen, "\n"), "re:$q $draft 0 notice\nre:$q $draft 1 text\nf $file 1 text{}$root\nx $long 1 text")
	if a := answers["re:$q"]; len(a) != 2 || a[0].ID != "$q" || a[0].Sender != you || a[1].Sender != "" {
		t.Errorf("answers %+v", a)
	}
	if n := len(answers["x"]); n > maxAnswers+1 {
		t.Errorf("%d answers", n)
	}
}
