package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"reverie/internal/matrix/matrixtest"
)

// doubting is a model that cannot tell which of two memories holds, and else echoes.
type doubting struct{ *echoing }

func (d doubting) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	if prompt, stream := lastAsked(body); strings.Contains(prompt, "<memory ") {
		var said []string
		for i := range 10 {
			said = append(said, fmt.Sprintf(`{"pair": %d, "verdict": "unsure"}`, i+1))
		}
		reply(w, stream, "["+strings.Join(said, ",")+"]")
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	d.echoing.ServeHTTP(w, r)
}

var keepNumber = regexp.MustCompile(`!memory keep ([0-9]+)a`)

// TestQuestionsOfADream: two people have memories that contradict each other. A dream comes
// upon them, and each is asked their own, in their own chat, as a notice, once, also if the
// bot begins anew; the model knows what was asked, and an answer by number settles it.
func TestQuestionsOfADream(t *testing.T) {
	m := &echoing{release: make(chan struct{})}
	r := withModel(t, doubting{m})
	stop := r.start()
	rooms, names, places := map[string]string{}, map[string]string{you: "Anna", friend: "Ben"}, map[string]string{you: "Berlin Hamburg", friend: "Rome Oslo"}
	for _, who := range []string{you, friend} {
		room := r.s.Room(who, matrixtest.NewRoom{Direct: true, Invite: []string{itself}})
		r.until("the bot does not come", func() bool { return r.s.Membership(room, itself) == "join" })
		rooms[who] = room
		towns := strings.Fields(places[who])
		for i, fact := range []string{" lives in " + towns[0] + ".", " lives in " + towns[1] + ".", " plays the cello.", " works as a nurse.", " has two cats."} {
			r.s.Say(who, room, "!remember "+names[who]+fact)
			r.until("not remembered", func() bool { return len(r.shown(room)) == i+1 })
		}
	}
	r.s.Say(you, rooms[you], "!dream")
	number := map[string]string{}
	for _, who := range []string{you, friend} {
		var asked string
		r.until("nobody is asked", func() bool {
			for _, e := range r.own(rooms[who]) {
				if strings.Contains(e.Content.Body, "!memory keep") {
					if asked = e.Content.Body; e.Content.MsgType != "m.notice" {
						t.Errorf("a %s", e.Content.MsgType)
					}
				}
			}
			return asked != ""
		})
		for other, towns := range places {
			if got := strings.Contains(asked, strings.Fields(towns)[0]) && strings.Contains(asked, strings.Fields(towns)[1]); got != (other == who) || strings.Contains(asked, names[other]) != (other == who) {
				t.Errorf("%s is asked %q", who, asked)
			}
		}
		number[who] = keepNumber.FindStringSubmatch(asked)[1]
	}
	r.until("not done with", func() bool { return r.count(`SELECT count(*) FROM memory_question WHERE asked > 0`) == 2 })
	r.settled()
	was := len(r.shown(rooms[you])) + len(r.shown(rooms[friend]))
	stop()
	r.start()
	r.s.Say(you, rooms[you], "!memory keep "+number[friend]+"a")
	r.until("no answer", func() bool { return len(r.shown(rooms[you]))+len(r.shown(rooms[friend])) == was+1 })
	if all := r.shown(rooms[you]); !strings.Contains(all[len(all)-1].body, "no such question") {
		t.Errorf("%q", all[len(all)-1])
	}
	r.s.Say(friend, rooms[friend], "!memory keep "+number[friend]+"a")
	r.until("not settled", func() bool {
		return r.count(`SELECT count(*) FROM memory WHERE text = 'Ben lives in Oslo.' AND state = 'superseded'`) == 1
	})
	if n := r.count(`SELECT count(*) FROM memory WHERE state = 'superseded'`); n != 1 {
		t.Errorf("%d superseded", n)
	}
	r.s.Say(you, rooms[you], "tell me of #apple")
	r.until("no answer", func() bool {
		all := r.shown(rooms[you])
		return strings.Contains(all[len(all)-1].body, "to #apple")
	})
	m.told(t, "!memory keep "+number[you]+"a")
	m.notTold(t, "Rome")
	r.settled()
	r.s.Say(friend, rooms[friend], "!forget Ben lives in Rome.")
	r.until("not forgotten", func() bool { return r.count(`SELECT count(*) FROM memory WHERE text LIKE 'Ben lives%'`) == 0 })
	r.settled()
	if n := r.count(`SELECT (SELECT count(*) FROM message WHERE text LIKE '%) 20%Ben lives%') + (SELECT count(*) FROM outbox WHERE text LIKE '%) 20%Ben lives%')`); n != 0 {
		t.Errorf("what was forgotten is still asked in %d places", n)
	}
}
