package dream

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"reverie/internal/dream/report"
	"reverie/internal/memory"
	"reverie/internal/memory/jsonl"
	"reverie/internal/task"
	"reverie/internal/test/expect"
	"reverie/internal/trust"
)

const room = "!room:example.org"

// chores is a world with tasks, whose model says answer of them.
type choreWorld struct {
	*world
	answer string
	err    error
	asked  []string // prompts about tasks
	ids    map[string]string
}

func newChores(t *testing.T) *choreWorld {
	t.Helper()
	c := &choreWorld{ids: map[string]string{}}
	c.world = newWorld(t, nil, func(_ *world, prompt string) (string, error) {
		c.asked = append(c.asked, prompt)
		answer := c.answer
		for content, id := range c.ids {
			answer = strings.ReplaceAll(answer, "<"+content+">", id)
		}
		return answer, c.err
	})
	c.d.cfg.Tasks = task.NewStore(c.d.cfg.DB, task.Config{Now: func() time.Time { return day0 }})
	c.exec(`INSERT INTO room (id) VALUES (?)`, room)
	c.now = day0.AddDate(0, 0, 100)
	return c
}

func (c *choreWorld) add(content string, change func(*task.Task)) string {
	c.t.Helper()
	x := task.Task{Room: room, User: owner, Content: content, Label: trust.Label{Integrity: trust.User, Readers: trust.RoomReaders(room)}}
	if change != nil {
		change(&x)
	}
	x = expect.Must(c.d.cfg.Tasks.Add(c.t.Context(), x))(c.t)
	c.ids[content] = x.ID
	return x.ID
}

// say has somebody write text in the room, days after the tasks were made.
func (c *choreWorld) say(days int, text string) {
	c.t.Helper()
	c.sayTo(trust.RoomReaders(room), days, text)
}

// sayTo is say, where those read it who are readers.
func (c *choreWorld) sayTo(readers trust.Readers, days int, text string) {
	c.t.Helper()
	expect.Must(c.d.cfg.DB.Exec(`INSERT INTO message (room, conversation, role, event_id, sender, text, at, readers) VALUES (?, 1, 'user', ?, ?, ?, ?, ?)`,
		room, fmt.Sprint("$", days, text), owner, text, day0.AddDate(0, 0, days).UnixMilli(), readers))(c.t)
}

// taskRows is all that is stored of tasks.
func (c *choreWorld) taskRows() string {
	c.t.Helper()
	return dump(c.t, c.d.cfg.DB, `SELECT * FROM task ORDER BY id`)
}

func (c *choreWorld) get(content string) task.Task {
	c.t.Helper()
	var all []task.Task
	for _, s := range []task.Status{task.All, task.Deleted} {
		some := expect.Must(c.d.cfg.Tasks.InRoom(c.t.Context(), room, s))(c.t)
		all = append(all, some...)
	}
	for _, x := range all {
		if x.ID == c.ids[content] {
			return x
		}
	}
	c.t.Fatalf("no task %q", content)
	return task.Task{}
}

// TestTasks: what tasks and dates prove is done, and what else a model would do is proposed, once. All
// of it is in the report, and what was done is taken back to the byte, and then not done again.
func TestTasks(t *testing.T) {
	c := newChores(t)
	c.add("Water the plants", nil)
	c.add("Die Rechnung von Strauss bezahlen", nil)
	c.add("Call Anna about the tickets", nil)
	c.add("call Anna about the tickets!", nil) // the same words
	c.add("Book the hotel in Rome", nil)
	c.add("In Rome book the hotel", nil)
	c.add("Read the book on fungi", nil)
	c.say(3, "Good news: I have watered the plants. What about lunch?")
	c.say(4, "Ich habe die Rechnung von Strauss gestern bezahlt.")
	c.answer = `Here you are:
[{"task": "<Water the plants>", "action": "complete", "message": 1, "quote": "I have watered the plants"},
 {"task": "#<Die Rechnung von Strauss bezahlen>", "action": "complete", "message": "2", "quote": "habe die Rechnung von Strauss gestern bezahlt"},
 {"task": "<In Rome book the hotel>", "action": "merge", "into": "<Book the hotel in Rome>"},
 {"task": "<Read the book on fungi>", "action": "pause"}]`
	before := c.taskRows()
	if r := c.dream(Options{DryRun: true, Phases: []Phase{Tasks}}); r.State != report.Planned || len(r.Tasks) != 1 || len(r.Proposals) != 3 || c.taskRows() != before {
		t.Fatalf("%+v", r)
	}
	r := c.dream(Options{})
	if len(r.Tasks) != 1 || r.State != report.Applied || len(r.Proposals) != 3 { // three of the model's at most, and one that needs none
		t.Fatalf("%+v %+v %q", r.Tasks, r.Proposals, r.Notes)
	}
	if got := r.Proposals[0].Text.String(); !strings.HasPrefix(got, "Is this done? Water the plants (#"+c.ids["Water the plants"]+"), according to what "+owner+" wrote on 2026-01-04 at ") {
		t.Error(got)
	}
	c.now = c.now.Add(24 * time.Hour)
	c.answer = `[{"task": "<Read the book on fungi>", "action": "pause"}]`
	if r := c.dream(Options{}); len(r.Tasks) != 1 || len(r.Proposals) != 0 { // the other in the night after
		t.Errorf("%+v, %+v, %q", r.Tasks, r.Proposals, r.Notes)
	}
	for content, want := range map[string]task.Status{
		"Water the plants": task.Active, "Die Rechnung von Strauss bezahlen": task.Active, "Book the hotel in Rome": task.Active, "In Rome book the hotel": task.Active,
		"Read the book on fungi": task.Paused,
	} {
		if x := c.get(content); x.Status != want {
			t.Errorf("%s: %s, want %s (%s)", content, x.Status, want, x.Reason)
		}
	}
	one, two := c.get("Call Anna about the tickets").Status, c.get("call Anna about the tickets!").Status
	if one == two || one != task.Deleted && two != task.Deleted {
		t.Errorf("of the same words: %s and %s", one, two)
	}
	for range 2 {
		if back, err := c.d.Undo(t.Context(), ""); err != nil || len(back.Chores) == 0 {
			t.Fatalf("%+v, %v", back, err)
		}
	}
	if diff := cmp.Diff(before, c.taskRows()); diff != "" {
		t.Error(diff)
	}
	c.exec(`DELETE FROM dream_task_list`)
	c.now = c.now.AddDate(0, 0, 60)
	if r := c.dream(Options{}); len(r.Tasks) != 0 || c.taskRows() != before {
		t.Errorf("done again: %+v", r.Tasks)
	}
	if !strings.Contains(c.asked[0], "[1] 2026-01-04 09:00 me: <data ") {
		t.Error(c.asked[0])
	}
}

// TestTasksAreSafe: whatever a model says, nothing is done to a task that people's words
// and the task itself do not bear out.
func TestTasksAreSafe(t *testing.T) {
	schedule := func(x *task.Task) {
		s := expect.Must(task.Schedule{Type: "daily", At: "09:00"}.Validate(day0, time.UTC))(t)
		x.Schedule = &s
	}
	urgently := func(x *task.Task) { x.Priority = 2 }
	for _, c := range []struct {
		name, content string
		change        func(*task.Task)
		said          string
		action        string
		proposed      bool
	}{
		{"no quote", "Water the plants", nil, "I have watered the plants", `"action": "complete"`, false},
		{"invented quote", "Water the plants", nil, "I like the plants", `"action": "complete", "message": 1, "quote": "I have watered the plants"`, false},
		{"another message", "Water the plants", nil, "I have watered the plants", `"action": "complete", "message": 7, "quote": "I have watered the plants"`, false},
		{"done", "Water the plants", nil, "I have watered the plants", `"action": "complete", "message": 1, "quote": "I have watered the plants"`, true},
		{"cut out of a no", "Water the plants", nil, "I haven't watered the plants", `"action": "complete", "message": 1, "quote": "watered the plants"`, true},
		{"nothing to do with it", "Call Anna", nil, "The milk is bought", `"action": "complete", "message": 1, "quote": "The milk is bought"`, false},
		{"scheduled, completed", "Water the plants", schedule, "I have watered the plants", `"action": "complete", "message": 1, "quote": "I have watered the plants"`, false},
		{"scheduled, paused", "Water the plants", schedule, "", `"action": "pause"`, false},
		{"deleted", "Water the plants", nil, "", `"action": "delete"`, false},
		{"a new schedule", "Water the plants", nil, "", `"action": "schedule", "content": "daily"`, false},
		{"other words", "Water the plants", nil, "", `"action": "rephrase", "content": "Burn all"`, false},
		{"another priority", "Water the plants", nil, "", `"action": "priority", "priority": 1`, false},
		{"urgent, paused", "Water the plants", urgently, "", `"action": "pause"`, false},
		{"spoken of", "Water the plants", nil, "The plants look sad", `"action": "pause"`, false},
		{"merged with none", "Water the plants", nil, "", `"action": "merge", "into": "task_aaaaaaaa"`, false},
		{"merged with itself", "Water the plants", nil, "", `"action": "merge", "into": "<Water the plants>"`, false},
		{"merged with another", "Water the plants", nil, "", `"action": "merge", "into": "<Feed the cat>"`, false},
		{"merged with more", "Water the small plants", nil, "", `"action": "merge", "into": "<Water the small red plants>"`, true},
		{"merged with another's", "Feed the cat now", nil, "", `"action": "merge", "into": "<now feed the cat>"`, false},
		{"twice", "Water the plants", nil, "", `"action": "pause"}, {"task": "<Water the plants>", "action": "pause"`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newChores(t)
			w.add("Feed the cat", nil)
			w.add("Water the small red plants", nil)
			w.add("now feed the cat", func(x *task.Task) { x.User = "@other:example.org" })
			w.add(c.content, c.change)
			if c.said != "" {
				w.say(50, c.said)
			}
			w.answer = `[{"task": "<` + c.content + `>", ` + c.action + `}]`
			before := w.taskRows()
			r := w.dream(Options{Phases: []Phase{Tasks}})
			if w.taskRows() != before || len(r.Tasks) > 0 {
				t.Errorf("%+v", r.Tasks)
			}
			if (len(r.Proposals) > 0) != c.proposed || (len(r.Notes) == 0) != c.proposed {
				t.Errorf("%+v, %q", r.Proposals, r.Notes)
			}
			if w.answer = `[]`; c.proposed {
				w.now = w.now.Add(24 * time.Hour)
				w.answer = `[{"task": "<` + c.content + `>", ` + c.action + `}]`
				w.say(51, "so it goes")
				if r := w.dream(Options{Phases: []Phase{Tasks}}); len(r.Proposals) > 0 || len(w.asked) != 2 {
					t.Errorf("proposed again: %+v, %d", r.Proposals, len(w.asked))
				}
			}
		})
	}
}

// TestTasksOfOthers: a model is shown one room at a time and proposes nothing of another.
func TestTasksOfOthers(t *testing.T) {
	c := newChores(t)
	c.add("Water the plants", nil)
	other := c.add("Feed the hens", func(x *task.Task) { x.Room = "!other:example.org" })
	c.say(3, "I have fed the hens")
	c.answer = `[{"task": "` + other + `", "action": "complete", "message": 1, "quote": "I have fed the hens"}]`
	before := c.taskRows()
	r := c.dream(Options{})
	if c.taskRows() != before || len(c.asked) != 2 || len(r.Proposals) != 0 {
		t.Errorf("%+v, %d, %+v", r.Tasks, len(c.asked), r.Proposals)
	}
	for _, p := range c.asked {
		if strings.Contains(p, "Water the plants") && strings.Contains(p, "Feed the hens") {
			t.Errorf("two rooms in one request: %s", p)
		}
	}
	if r := c.dream(Options{}); len(c.asked) != 2 || r.Cost.Calls != 0 {
		t.Errorf("asked the same again: %d", len(c.asked))
	}
	// What is known of late is a witness as well; what was taken back is none.
	c.exec(`UPDATE message SET text = '[taken back]'`)
	known := c.know(memory.Entry{Scope: memory.Room(room), Text: "Ben has watered the plants.", Integrity: trust.User, ObservedAt: day0.AddDate(0, 0, 9)})
	c.answer = `[{"task": "<Water the plants>", "action": "complete", "message": 1, "quote": "Ben has watered the plants"}]`
	if r := c.dream(Options{}); len(r.Proposals) != 1 || !strings.Contains(r.Proposals[0].Text.String(), "according to the memory "+known.ID) {
		t.Errorf("%+v", r.Proposals)
	}
}

// TestTasksAndModelsThatFail: prose, half an answer and silence change nothing, and the
// report says why.
func TestTasksAndModelsThatFail(t *testing.T) {
	for name, answer := range map[string]string{
		"prose": "All of them are done, I think.", "cut": `[{"task": "<Water the plants>", "action": "complete", "message": 1, "quote": "I have watered the plants"}, {"ta`,
		"object": `{"task": "<Water the plants>", "action": "pause"}`, "empty": "", "down": "down",
	} {
		t.Run(name, func(t *testing.T) {
			c := newChores(t)
			c.add("Water the plants", nil)
			c.say(3, "I have watered the plants")
			if c.answer = answer; name == "down" {
				c.err = errors.New("connection refused")
			}
			before := c.taskRows()
			r := c.dream(Options{})
			if c.taskRows() != before || r.State != report.Nothing || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "stay as they are") {
				t.Errorf("%+v", r)
			}
			if name != "down" {
				return
			}
			c.err, c.answer = nil, `[{"task": "<Water the plants>", "action": "complete", "message": 1, "quote": "I have watered the plants"}]`
			if r := c.dream(Options{}); len(r.Proposals) != 1 {
				t.Errorf("not asked again: %+v", r)
			}
		})
	}
}

// TestTasksAndWhatOthersRead: a request about tasks shows what was said to those who read the
// tasks, and nothing from the time when the room was a person's direct chat.
func TestTasksAndWhatOthersRead(t *testing.T) {
	c := newChores(t)
	c.add("water the plants", nil)
	c.sayTo(trust.Readers("private:"+owner), 5, "my doctor says that it is serious")
	c.say(6, "I have not watered them yet")
	c.answer = "[]"
	c.dream(Options{})
	if len(c.asked) != 1 || !strings.Contains(c.asked[0], "not watered") || strings.Contains(c.asked[0], "doctor") {
		t.Errorf("asked: %q", c.asked)
	}
}

// dentists is what no table of questions knows of: each person has a new one.
func dentists() []fact {
	var out []fact
	for i, who := range []string{"Anna", "Ben", "Carla", "David", "Elif", "Farid", "Greta", "Hugo"} {
		first, second := []string{"Adler", "Bosse", "Conrad"}[i%3], []string{"Ebert", "Falk", "Gruber"}[i%3]
		out = append(out,
			fact{key: who + " dentist", old: true, at: i, texts: []string{"For bad teeth " + who + " sees " + first + "."}},
			fact{key: who + " dentist", at: 50 + i, texts: []string{who + " goes to " + second + " with bad teeth these days."}},
			fact{key: who + " hobby", at: 20 + i, texts: []string{who + " collects stamps in the evening."}},
			fact{key: who + " pet", at: 30 + i, texts: []string{who + " walks a small dog at noon."}},
		)
	}
	return out
}

// sitters are about people without a name, in two languages.
func sitters() []fact {
	out := dentists()
	for i, who := range []string{"The babysitter", "Our landlord", "My cousin Lara", "Onkel Bert"} {
		dish, alarm := []string{"mushrooms", "olives", "fish", "nuts"}[i], []string{"6:15", "6:45", "7:15", "7:45"}[i]
		out = append(out,
			fact{key: who + dish, old: true, at: i, texts: []string{who + " likes " + dish + "."}},
			fact{key: who + dish, at: 40 + i, texts: []string{who + " hat genug von " + dish + "."}},
			fact{key: who + alarm, at: 60 + i, texts: []string{who + " steht um " + alarm + " auf."}},
		)
	}
	return out
}

// TestCorrections: what contradicts by its meaning only is replaced where a model and the
// structure say so; whatever a model says, nothing else is.
// Holds P5.
func TestCorrections(t *testing.T) {
	dir := prepare(t, sitters())
	for name, c := range map[string]struct {
		judge func(*world, string) (string, error)
		want  int
	}{
		"perfect": {perfect, 8}, "always update": {always("update"), 0}, "always the newer": {always("keep_second"), 0}, "always unsure": {always("unsure"), 0}, "always the same": {always("duplicate"), 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := openWorld(t, dir, sitters(), c.judge)
			got := 0
			for range 4 {
				for _, s := range w.dream(Options{Now: true}).Superseded {
					if got++; !w.of[s.Text].old {
						t.Errorf("%q holds", s.Text)
					}
				}
			}
			expect.Equal(t, got, c.want, "superseded")
			for pair, n := range w.asked {
				if n > 1 {
					t.Errorf("asked %d times: %s", n, pair)
				}
			}
		})
	}
}

// TestOneWrongWord: a model that is right but for one pair costs nothing that holds: that pair is
// a question. One whose structure agrees is replaced.
func TestOneWrongWord(t *testing.T) {
	for _, c := range []struct {
		older, newer string
		others       []string
		want         bool
	}{
		{"For bad teeth Anna sees Adler.", "Anna goes to Bosse with bad teeth these days.", nil, true},
		{"Anna likes olives.", "Anna has had enough of olives.", nil, false}, // no word of change
		{"Remind me on Wednesdays to water the ferns", "Remind me on Sundays to water the orchid", nil, false},
		{"The code of the shed is 7204.", "The code of the garage is now 7205.", nil, false},
		{"Tim gets 5 € on Fridays.", "Ida gets 8 € on Fridays now.", nil, false},
		{"He lives in Bath.", "She lives in Derby now.", nil, false},
		{"Sue lives in Bath.", "I live in Derby now.", nil, false},
		{"Andrea wohnt in Kiel.", "Andreas wohnt jetzt in Ulm.", []string{"Andreas kocht gern."}, false},
		{"Anna lives in Bath.", "Anna has moved to Derby.", nil, true},
		{"Anna vive a Pisa.", "Anna si è trasferita da Pisa a Bari.", nil, true},
		{"Anna works for Siemens.", "Anna also works for Bosch.", nil, false},
		{"Anna lives in Bath.", "Anna wants to live in Rome now.", nil, false},
		{"Hazel is older than Owen.", "Owen isn't older than Hazel.", nil, false},
		{"Desmond leads the choir.", "Yasmin leads the choir now.", nil, false}, // a role that changes hands
		{"Fr. Lorenz ist gegen Nüsse allergisch.", "Hr. Lorenz ist nicht mehr gegen Nüsse allergisch.", []string{"Fr. Albers mag Tee.", "Hr. Brandt mag Tee."}, false},
		{"Alva hilft beim Sommerfest: abgesagt.", "Alva hilft beim Flohmarkt: abgesagt.", nil, false},
		{"my sister Fine liebt Rummikub nicht mehr", "Geburtstag von my sister Fine ist 5.4.", nil, false},
		{"Our landlord doesn't eat caraway.", "Our landlord has moved to Ulm, and our landlord eats caraway.", nil, false},
		{"For bad teeth Anna sees Adler.", "Perhaps Anna goes to Bosse with bad teeth these days.", nil, false},
		{"For bad teeth Anna sees Adler.", "Anna goes to Bosse with bad teeth these days, too.", nil, false},
		{"Anna walks a small dog.", "Anna goes to Bosse with bad teeth these days.", nil, false},
		{"Anna walks a small dog in the park.", "Anna's small cat sleeps in the park these days.", []string{"Anna's small cat sleeps on the sofa in the park."}, false}, // another text is more like it
	} {
		facts := []fact{{key: "older", at: 1, texts: []string{c.older}}, {key: "newer", at: 90, texts: []string{c.newer}}, {key: "Anna", at: 20, texts: []string{"Anna collects stamps in the evening."}}}
		for _, text := range c.others {
			facts = append(facts, fact{key: text, at: 10, texts: []string{text}})
		}
		w := newWorld(t, facts, func(w *world, prompt string) (string, error) {
			return answerAll(prompt, func(a, b string) string {
				if a == c.older && b == c.newer {
					return "keep_second"
				}
				return "neither"
			}), nil
		})
		r := w.dream(Options{})
		if n := w.asked[min(c.older, c.newer)+"|"+max(c.older, c.newer)]; n != 1 || (len(r.Superseded) == 1) != c.want || len(r.Superseded)+len(r.Questions) != 1 {
			t.Errorf("%q after %q: asked %d times, %+v, %+v", c.newer, c.older, n, r.Superseded, r.Questions)
		}
	}
}

// TestOneReplacesOne: a text that has replaced another replaces no more, nor does one that says the same.
func TestOneReplacesOne(t *testing.T) {
	w := newWorld(t, []fact{
		{key: "dentist", old: true, at: 1, texts: []string{"For bad teeth Anna sees Adler."}},
		{key: "dentist", at: 50, texts: []string{"Anna goes to Bosse with bad teeth these days."}},
	}, perfect)
	if r := w.dream(Options{Phases: Phases}); len(r.Superseded) != 1 { // so that the next one looks at everything again
		t.Fatalf("%+v", r)
	}
	more := fact{key: "dentist", texts: []string{"With bad teeth Anna rings her aunt."}}
	w.of[more.texts[0]] = &more
	expect.Must((&jsonl.Importer{Store: w.store, Scope: memory.Private(owner), Now: func() time.Time { return w.now }}).Import(t.Context(), owner,
		fmt.Appendf(nil, `{"text":%q,"source":"harvest","observed_at":"2026-01-03T09:00:00Z"}`, more.texts[0])))(t)
	w.now = w.now.Add(24 * time.Hour)
	if r := w.dream(Options{}); len(r.Superseded) != 0 || len(r.Questions) != 1 {
		t.Errorf("%+v", r)
	}
}

// candidates are the texts that the last of texts may correct, those most like it first.
func candidates(texts ...string) (out []string) {
	s := signed(texts...)
	for i, x := range s {
		x.ObservedAt, x.Integrity = day0.AddDate(0, 0, i), trust.User
	}
	c, _ := newTopics(&memories{names: s[0].names}, s, true, true).related(len(s) - 1)
	for _, p := range c {
		out = append(out, p.a.Text)
	}
	return out
}

// TestCandidates: what a text may correct is found in lower case, in another language and in a
// script without spaces.
func TestCandidates(t *testing.T) {
	for _, c := range []struct{ texts, want []string }{
		{[]string{"samir's bday is the 3rd of may", "samir plays padel", "samir rides a trek", "zoe likes olives", "oops samir's birthday is actually the 30th of june"},
			[]string{"samir plays padel", "samir rides a trek", "samir's bday is the 3rd of may"}},
		{[]string{"la vicina frequenta il coro.", "la vicina ha lasciato il coro."}, []string{"la vicina frequenta il coro."}},
		{[]string{"A il commercialista piace il baccalà.", "A il commercialista il baccalà non piace più."}, []string{"A il commercialista piace il baccalà."}},
	} {
		if got := slices.Sorted(slices.Values(candidates(c.texts...))); !slices.Equal(got, c.want) {
			t.Errorf("%q: %q", c.texts, got)
		}
	}
	if got := candidates("佐藤のロッカーの暗証番号は3008です", "鈴木は教師です", "高橋は京都に住んでいます", "鈴木の玄関の暗証番号は4711です"); got[0] != "鈴木は教師です" {
		t.Errorf("what is about the same comes first: %q", got)
	}
}

// TestTwoThings: a text that says two things stays whatever is newer, but for one that
// says what came to an end and what is so instead.
func TestTwoThings(t *testing.T) {
	for _, c := range []struct {
		text             string
		compound, turned bool
	}{
		{"Anna sold the old car and drives a Volvo.", true, true},
		{"Anna hat sich von Ben getrennt und ist jetzt mit Carl zusammen.", true, true},
		{"Anna a vendu sa voiture et conduit une Clio.", true, true},
		{"Anna ha cambiado de oficio y trabaja de pintora.", true, true},
		{"Anna sold the car and Ben drives a Volvo.", true, false},
		{"Anna left the choir, and Anna likes tea.", true, false},
		{"Anna left the choir. She drives a Volvo and likes tea.", true, false},
		{"Anna lives in Oslo and likes tea.", true, false},
		{"Anna likes tea and sold the car.", true, false},
		{"Anna sold the car and quit the choir.", true, false},
		{"Das Treffen wurde verschoben und findet am 4. August statt.", true, true},
		{"Anna handed in the old laptop and works on a MacBook.", true, true},
		{"Anna ist mit dem Auto unterwegs, und zwar fährt Anna einen Polo.", false, false},
		{"Anna: Anschrift: Kirchstr. 2a", false, false},
		{"Anna lives in Kirchdorf. 2 dogs live there.", true, false},
		{"Fr. Albers wohnt in Ulm.", false, false},
		{"Tel. Tochter von Hr. Brandt, Zi. 12: 4711", false, false},
		{"Fam. Celik kommt am 3. Okt. 2024.", false, false},
		{"Prof. Dr. med. Roth wohnt in Ulm.", false, false},
		{"王伟不喝酒，另外王伟住在上海", true, false},
		{"田中さんは教師です、それと車はフィットです", true, false},
		{"王伟把大众卖了，现在开丰田", false, false},
		{"Fr. Albers wohnt in Ulm. Hr. Albers wohnt in Köln.", true, false},
	} {
		if s := signed(c.text)[0]; s.compound != c.compound || s.turned != c.turned {
			t.Errorf("%q: %v, %v", c.text, s.compound, s.turned)
		}
	}
}

// TestWhoseWord: what a dream put together holds over what was heard before it; what a
// person said is asked about.
func TestWhoseWord(t *testing.T) {
	for _, c := range []struct {
		old, later memory.Source
		want       bool
	}{{memory.Harvest, memory.DreamingMerge, true}, {memory.UserExplicit, memory.Harvest, false}, {memory.FromFile, memory.DreamingMerge, false}, {memory.UserExplicit, memory.FromFile, true}} {
		w := newWorld(t, []fact{
			{key: "home", old: true, at: 1, by: c.old, texts: []string{"Anna lives in Berlin."}},
			{key: "home", at: 90, by: c.later, texts: []string{"Anna has moved to Hamburg."}}}, perfect)
		r := w.dream(Options{})
		if (len(r.Superseded) == 1) != c.want || (len(r.Questions) == 0) != c.want {
			t.Errorf("%s after %s: %+v", c.later, c.old, r)
		}
	}
}
