package web

import (
	"encoding/json"
	"fmt"
	"time"

	"reverie/internal/approval"
	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/memory"
	"reverie/internal/prompt"
	"reverie/internal/prompt/section"
	"reverie/internal/questions"
	"reverie/internal/task"
	"reverie/internal/test/expect"
	"reverie/internal/tool"
	"reverie/internal/trust"
)

// canary marks what ada may not read.
const canary = "CANARY"

// seeded are ids of what seed has stored. Those of others are what ada may not read.
type seeded struct {
	entry, batch, turn, question, code, sub           string
	othersEntry, othersBatch, othersTurn, othersQuest string
	othersCode, othersSub                             string
}

// seed fills the database: each kind of thing once for ada, once for a person or room whose texts she may not read. All
// texts are hostile.
func (f *fixture) seed() (s seeded) {
	t, ctx := f.t, f.t.Context()
	f.Log.Info("no room " + hostile)
	f.Log.With("room", "!ada:example.org").Info("of ada "+hostile, "a", 1)
	f.Log.Warn("of the secret room "+canary, "room", secret)
	f.Log.With("room", "!carl:example.org").Error("of carl", "err", canary)
	f.Log.With("room", "!nowhere:example.org").Error("of an unknown room", "err", canary)
	s.entry, s.question = f.memories(memory.Private(ada), "")
	s.othersEntry, s.othersQuest = f.memories(memory.Private(carl), canary)
	f.memories(memory.Room(secret), canary)
	f.memories(memory.Private(bob), canary)
	f.memories(memory.Shared, "")
	for entry, batch := range map[string]*string{s.entry: &s.batch, s.othersEntry: &s.othersBatch} {
		ops := expect.Must(f.Memory.History(ctx, memory.Access{All: true}, entry))(t)
		*batch = ops[len(ops)-1].Batch
	}
	s.turn, s.code, s.sub = f.conversation("!ada:example.org", ada, trust.PersonReaders(ada), "")
	s.othersTurn, s.othersCode, s.othersSub = f.conversation("!carl:example.org", carl, trust.PersonReaders(carl), canary)
	f.conversation(shared, carl, trust.RoomReaders(shared), "")
	f.conversation(secret, carl, trust.RoomReaders(secret), canary)
	f.conversation("!bob:example.org", bob, trust.PersonReaders(bob), canary)
	f.Usage.Count("small "+hostile, ada, llm.Usage{Prompt: 1000, Output: 200}, false)
	f.rows(f.DB, `INSERT INTO dream_run (id, at, ended, state, calls, tokens) VALUES ('dream_1', ?, ?, 'applied', 3, 4000)`,
		time.Now().UnixMilli(), time.Now().UnixMilli())
	for _, e := range []string{s.entry, s.othersEntry} {
		f.rows(f.DB, `INSERT INTO dream_op (run, kind, entry, successor, why) VALUES ('dream_1', 'supersede', ?, '', 'older')`, e)
	}
	return s
}

// memories adds two entries that contradict each other, and the question which of them holds.
func (f *fixture) memories(scope memory.Scope, mark string) (entry, question string) {
	t, ctx := f.t, f.t.Context()
	add := func(text string) memory.Entry {
		e, _, err := f.Memory.Add(ctx, memory.Entry{Scope: scope, Text: text, Source: memory.UserExplicit, Integrity: trust.Owner,
			Quote: "said " + hostile + mark, Subject: "who " + hostile, ObservedAt: time.Now()}, ada)
		expect.OK(t, err)
		return e
	}
	first, second := add("The bike is red. "+hostile+mark), add("The bike is blue. "+hostile+mark)
	id := expect.Must(f.Questions.Add(ctx, questions.Question{Run: "dream_1", Scope: scope, First: first, Second: second, Why: "they differ"}))(t)
	return first.ID, fmt.Sprint(id)
}

// conversation adds a turn with a tool call, its report, an approval, a task with a run and a sub-session.
func (f *fixture) conversation(room, person string, readers trust.Readers, mark string) (turn, code, sub string) {
	t, ctx := f.t, f.t.Context()
	talk, label, at := history.Timeline(room), trust.Label{Integrity: trust.User, Readers: readers}, time.Now().Add(-time.Minute)
	say := func(m history.Message) history.Message {
		m.Room, m.Label, m.At = talk, label, at
		at = at.Add(2 * time.Second)
		expect.OK(t, f.History.Append(ctx, &m))
		return m
	}
	asked := say(history.Message{Role: llm.User, EventID: "$1" + room, Sender: person, Header: "[now]", Text: "Please look. " + hostile + mark, Tail: "recalled " + hostile + mark})
	say(history.Message{Role: llm.Assistant, Text: "I look.", Calls: []llm.ToolCall{{ID: "c1", Name: "search" + hostile, Arguments: `{"q":"` + mark + `"}`}}})
	say(history.Message{Role: llm.Tool, CallID: "c1", Text: "found " + hostile + mark, Failed: true})
	say(history.Message{Role: llm.Assistant, EventID: "re:$1" + room, Text: "Here it is. " + hostile + mark})
	r := prompt.Report{Layout: prompt.Stable, Total: 900, Window: 8192, MaxOutput: 2048, Reused: .8, TokenRatio: 1,
		PrefixTokens: 500, ToolTokens: 100, TailTokens: 50, History: prompt.HistoryReport{Messages: 1, Tokens: 250}, PrefixHash: "x",
		Sections: []prompt.SectionReport{{ID: "persona " + hostile, Zone: section.Prefix, Tokens: 500, State: prompt.Shrunk, Note: "3 lines left out"}}}
	report := expect.Must(json.Marshal(r))(t)
	f.rows(f.DB, `INSERT INTO prompt_report (room, message, at, report) VALUES (?, ?, ?, ?)`, room, asked.ID, at.UnixMilli(), string(report))

	code = fmt.Sprintf("code%d", asked.ID)
	expect.OK(t, f.Approvals.Put(ctx, f.DB, approval.Approval{Code: code, Room: room, Talk: talk, Conversation: 1, Event: "$1" + room, Asker: person,
		Readers: readers, Quote: mark, State: approval.Open, Created: time.Now().Add(-time.Second), Expires: time.Now().Add(time.Hour), Sources: []string{"a page " + hostile + mark},
		Acts: []approval.Act{{Act: tool.Act{Call: llm.ToolCall{Name: "append_memory", Arguments: `{"text":"` + mark + ` <script>alert(3)</script>"}`}, Covers: "x"}}}}))
	expect.Must(f.Tasks.Add(ctx, task.Task{Room: room, User: person, Label: label, Content: "Water the plants " + mark + "<b>"}))(t)
	tasks := expect.Must(f.Tasks.InRoom(ctx, room, task.All))(t)
	f.rows(f.DB, `INSERT INTO job_run (task, due, state, claimed, result) VALUES (?, ?, 'done', ?, ?)`, tasks[0].ID, at.UnixMilli(), at.UnixMilli(), "done "+hostile+mark)

	sub = fmt.Sprintf("sub_%08d", asked.ID)
	private := readers.Person() != ""
	for _, id := range []string{sub, sub + "b"} {
		f.rows(f.DB, `INSERT INTO sub_session (id, depth, room, user, private, objective, mode, tools, timeout, status, created, ended) VALUES (?, 1, ?, ?, ?, ?, 'full', '[]', 1000, 'completed', ?, ?)`,
			id, room, person, private, "Read it. "+hostile+mark, at.UnixMilli(), at.Add(time.Second).UnixMilli())
	}
	f.rows(f.DB, `INSERT INTO sub_session_need (node, needs) VALUES (?, ?)`, sub+"b", sub)
	work := history.Message{Room: history.Timeline("sub:" + sub), Role: llm.Assistant, Text: "I read. " + hostile + mark, At: at, Label: label}
	expect.OK(t, f.History.Append(ctx, &work))
	return fmt.Sprint(asked.ID), code, sub
}
