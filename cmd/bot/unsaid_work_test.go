package main

import (
	"testing"
)

// A question is taken back whose answer made a task and set a sub-session to work: both
// end, their words go, and one notice says so without them. What others asked for stays, and
// so does what is done.
// Holds F33, M8.
func TestTakenBackWorkEnds(t *testing.T) {
	r, m := withEditing(t)
	stop := r.start()
	room := r.meetDirect()
	one := r.s.Say(you, room, "remind helper #apple")
	r.showing(room, "to #apple")
	r.until("nothing works in the background", func() bool { return m.calls() == 3 })
	two := r.s.Say(you, room, "remind #fig")
	r.settles(room, "to #apple", "to #fig")
	r.redact(you, room, one)
	const notice = "You took your message back, so I have ended what came of it and was still to come (tasks: 1, background work: "
	r.showing(room, "to #fig", notice+"1)")
	r.until("the sub-session works on", func() bool { return m.givenUp() == 1 })
	r.settled()
	for what, query := range map[string]string{
		"tasks that stay":        `SELECT count(*) FROM task WHERE status = 'active' AND content LIKE '%#fig%'`,
		"tasks that are deleted": `SELECT count(*) FROM task WHERE status = 'deleted' AND content = '[taken back]'`,
		"sub-sessions that end":  `SELECT count(*) FROM sub_session WHERE status = 'cancelled' AND told > 0`,
	} {
		if n := r.count(query); n != 1 {
			t.Errorf("%d %s", n, what)
		}
	}
	if n := r.traces("#apple") + r.count(`SELECT (SELECT count(*) FROM task WHERE content LIKE '%#apple%') + (SELECT count(*) FROM sub_session WHERE objective || context || result LIKE '%#apple%')`); n != 0 {
		t.Errorf("its words stand in %d places", n)
	}
	stop()
	r.start()
	r.s.Say(you, room, "#kiwi")
	r.showing(room, "to #fig", notice+"1)", "to #kiwi")
	if n := r.count(`UPDATE task SET status = 'completed', next_due = NULL WHERE status = 'active' RETURNING 1`); n != 1 {
		t.Fatal("no task to do")
	}
	r.redact(you, room, two)
	r.settles(room, notice+"1)", "to #kiwi")
	if n := r.count(`SELECT count(*) FROM task WHERE status = 'completed' AND content LIKE '%#fig%'`); n != 1 {
		t.Error("what was done is gone")
	}
}

// Of two messages that were answered together one is taken back: what came of both stays
// until the other is taken back too. An answer that is given anew by !retry counts, too.
// Holds M8.
func TestTakenBackWorkOfTwo(t *testing.T) {
	r, m := withEditing(t)
	r.start()
	room := r.meetDirect()
	r.s.Say(you, room, "slow #first")
	r.showing(room, "answer 1 to #first")
	one, two := r.s.Say(you, room, "#apple"), r.s.Say(you, room, "remind #fig")
	r.takenIn(room, two)
	close(m.release)
	r.settles(room, "#first", "to #fig")
	tasks := func(status string) int { return r.count(`SELECT count(*) FROM task WHERE status = ?`, status) }
	r.redact(you, room, one)
	r.until("not answered anew", func() bool { return m.calls() > 4 })
	r.settles(room, "#first", "to #fig")
	if n := tasks("deleted"); n != 0 {
		t.Errorf("%d tasks are deleted though one of those who asked still does", n)
	}
	open := tasks("active")
	r.s.Say(you, room, "!retry")
	r.settles(room, "#first", "to #fig", "to #fig")
	if n := tasks("active"); n != open+1 {
		t.Fatalf("%d tasks, then %d", open, n)
	}
	r.redact(you, room, two)
	r.settles(room, "#first", "background work: 0")
	if a, d := tasks("active"), tasks("deleted"); a != 0 || d != open+1 {
		t.Errorf("%d tasks are open, %d deleted", a, d)
	}
}
