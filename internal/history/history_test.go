package history_test

import (
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/store"
	"reverie/internal/store/storetest"
	"reverie/internal/test/expect"
	"reverie/internal/trust"
)

const here, there = "!here:example.org", "!there:example.org"

var noon = time.Date(2026, 11, 21, 12, 0, 0, 123_000_000, time.UTC)

func open(t testing.TB) (*history.Store, *store.DB) {
	t.Helper()
	db := expect.Must(storetest.Open(t, filepath.Join(t.TempDir(), "bot.db")))(t)
	t.Cleanup(func() { _ = db.Close() })
	return history.NewStore(db), db
}

func say(t testing.TB, s *history.Store, room, text string) history.Message {
	t.Helper()
	m := history.Message{Room: history.Timeline(room), Role: llm.User, Text: text, At: noon}
	expect.OK(t, s.Append(t.Context(), &m))
	return m
}

func texts(t testing.TB, s *history.Store, room string) string {
	t.Helper()
	all := expect.Must(s.Load(t.Context(), history.Timeline(room)))(t)
	var out []string
	for _, m := range all {
		out = append(out, m.Text)
	}
	return strings.Join(out, "|")
}

func TestContent(t *testing.T) {
	for want, m := range map[string]history.Message{
		"":                   {},
		"head":               {Header: "head"},
		"text":               {Text: "text"},
		"tail":               {Tail: "tail"},
		"head\ntext":         {Header: "head", Text: "text"},
		"head\n\ntail":       {Header: "head", Tail: "tail"},
		"text\n\ntail":       {Text: "text", Tail: "tail"},
		"head\ntext\n\ntail": {Header: "head", Text: "text", Tail: "tail"},
		" \n\n\n \n\n\n":     {Header: " \n", Text: "\n ", Tail: "\n"}, // bytes as they are
	} {
		expect.Equal(t, m.Content(), want, m)
	}
}

func TestAppendAndLoadKeepEveryByte(t *testing.T) {
	s, _ := open(t)
	want := []history.Message{
		{Room: here, Role: llm.User, EventID: "$1", Sender: "@me:x", Header: "[Sat 2026-11-21 12:00 UTC]", Text: "茶 🫖\x00\r\n\u2028 'q\"", Tail: "<tail>", At: noon},
		{Room: here, Role: llm.Assistant, Text: "", Calls: []llm.ToolCall{
			{ID: "c1", Name: "append_memory", Arguments: `{"entry":"<Jana> & \u00e9 é"}`}, {ID: "c2", Name: "task", Arguments: "not json {"}}, At: noon.Add(time.Millisecond)},
		{Room: here, Role: llm.Tool, CallID: "c1", Text: "stored", At: noon},
		{Room: here, Role: llm.Tool, CallID: "c2", Text: "no JSON", Failed: true, At: noon},
		{Room: here, Role: llm.System, Text: "no time"},
	}
	for i := range want {
		expect.OK(t, s.Append(t.Context(), &want[i]))
		expect.False(t, want[i].ID == 0 || want[i].Conversation != 1, "message %d got ID %d, conversation %d", i, want[i].ID, want[i].Conversation)
	}
	got := expect.Must(s.Load(t.Context(), here))(t)
	expect.NoDiff(t, got, want, "other than wanted")
	expect.False(t, !want[3].Failed, "the failed result counts as done")
	expect.False(t, want[0].Text != "茶 🫖\x00\r\n\u2028 'q\"" || want[1].Calls[1].Arguments != "not json {", "Append changed %+v", want)
}

// TestDuplicateEvents: an event that comes again, even after a new conversation or
// when it was retired, is told apart from a new one.
func TestDuplicateEvents(t *testing.T) {
	s, _ := open(t)
	first := history.Message{Room: here, Role: llm.User, EventID: "$e", Text: "once", Sender: "@me:x", At: noon}
	expect.OK(t, s.Append(t.Context(), &first))
	check := func(when string) {
		t.Helper()
		again := history.Message{Room: here, Role: llm.User, EventID: "$e", Text: "twice", At: noon.Add(time.Hour)}
		if err := s.Append(t.Context(), &again); !errors.Is(err, history.ErrDuplicate) {
			t.Errorf("%s: error %v", when, err)
		}
		expect.NoDiff(t, again, first, "%s: not the stored row", when)
	}
	check("at once")
	expect.OK(t, s.Retire(t.Context(), here, 0))
	check("retired")
	expect.Must(s.StartNew(t.Context(), here))(t)
	check("in a new conversation")
	elsewhere := history.Message{Room: there, Role: llm.User, EventID: "$e", Text: "other", At: noon}
	if err := s.Append(t.Context(), &elsewhere); err != nil {
		t.Errorf("the same id in another room: %v", err)
	}
	for range 2 { // what has no id is never known
		say(t, s, there, "same")
	}
	expect.Equal(t, texts(t, s, there), "other|same|same", "got")
}

func TestConversations(t *testing.T) {
	s, db := open(t)
	expect.Equal(t, texts(t, s, here), "", "an unknown room holds")
	say(t, s, here, "one")
	say(t, s, there, "other")
	say(t, s, here, "two")
	n, err := s.StartNew(t.Context(), here)
	if err != nil || n != 2 {
		t.Fatalf("StartNew = %d, %v", n, err)
	}
	expect.Equal(t, texts(t, s, here), "", "a new conversation holds")
	expect.Equal(t, say(t, s, here, "three").Conversation, 2, "conversation")
	expect.Equal(t, texts(t, s, here)+" "+texts(t, s, there), "three other", "got")
	var kept int
	if err := db.QueryRow(`SELECT count(*) FROM message WHERE room = ?`, here).Scan(&kept); err != nil || kept != 3 {
		t.Errorf("%d of 3 messages are kept, %v", kept, err)
	}
	expect.Equal(t, expect.Must(s.StartNew(t.Context(), "!fresh"))(t), 1, "StartNew in a fresh room =")
	expect.Equal(t, say(t, s, "!fresh", "x").Conversation, 1, "conversation")
	for _, want := range [][]string{{"!fresh", here, there}, {there, "!fresh", here}} {
		expect.NoDiff(t, expect.Must(s.Rooms(t.Context()))(t), want, "rooms")
		say(t, s, there, "again")
	}
}

func TestRetire(t *testing.T) {
	s, db := open(t)
	question := say(t, s, here, "question")
	say(t, s, there, "other")
	say(t, s, here, "call")
	say(t, s, here, "answer")
	expect.OK(t, s.Retire(t.Context(), here, question.ID))
	say(t, s, here, "better answer")
	expect.Equal(t, texts(t, s, here)+" "+texts(t, s, there), "question|better answer other", "got")
	var kept int
	if err := db.QueryRow(`SELECT count(*) FROM message WHERE room = ?`, here).Scan(&kept); err != nil || kept != 4 {
		t.Errorf("%d of 4 messages are kept, %v", kept, err)
	}
}

func TestSetTail(t *testing.T) {
	s, db := open(t)
	m := say(t, s, here, "text")
	set := func(id int64, tail string, commit bool) error {
		t.Helper()
		tx := expect.Must(db.BeginTx(t.Context(), nil))(t)
		defer tx.Rollback()
		if err := s.SetTail(t.Context(), tx, id, tail, trust.Owner); err != nil {
			return err
		}
		if commit {
			return tx.Commit()
		}
		return nil
	}
	expect.OK(t, set(m.ID, "kept", true))
	expect.OK(t, set(m.ID, "rolled back", false))
	expect.False(t, set(m.ID+1, "x", true) == nil, "set the tail of no message")
	got := expect.Must(s.Load(t.Context(), here))(t)
	expect.Equal(t, got[0].Content(), "text\n\nkept", "it reads")
}

// TestOrder appends 1,000 messages, from several goroutines to several rooms at
// once: within a room they come back as they were appended.
func TestOrder(t *testing.T) {
	s, _ := open(t)
	const rooms, each = 5, 200
	var wg sync.WaitGroup
	for r := range rooms {
		wg.Go(func() {
			for i := range each {
				m := history.Message{Room: history.Timeline(fmt.Sprint(r)), Role: llm.User, EventID: fmt.Sprint("$", i), Text: fmt.Sprint(i), At: noon.Add(-time.Duration(i) * time.Hour)}
				if err := s.Append(t.Context(), &m); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	seen := map[int64]bool{}
	for r := range rooms {
		all := expect.Must(s.Load(t.Context(), history.Timeline(fmt.Sprint(r))))(t)
		expect.Equal(t, len(all), each, "room %d: messages", r)
		for i, m := range all {
			if m.Text != fmt.Sprint(i) || seen[m.ID] {
				t.Fatalf("room %d: message %d is %q with ID %d", r, i, m.Text, m.ID)
			}
			seen[m.ID] = true
		}
	}
}

func TestLoadUsesItsIndex(t *testing.T) {
	_, db := open(t)
	rows := expect.Must(db.Query(`EXPLAIN QUERY PLAN SELECT text FROM message WHERE room = ?1 AND conversation = (SELECT conversation FROM room WHERE id = ?1) AND retired = 0 ORDER BY id`, here))(t)
	defer rows.Close()
	var plan strings.Builder
	for rows.Next() {
		var a, b, c int
		var detail string
		expect.OK(t, rows.Scan(&a, &b, &c, &detail))
		plan.WriteString(detail + "\n")
	}
	if !strings.Contains(plan.String(), "message_by_conversation") || strings.Contains(plan.String(), "TEMP B-TREE") {
		t.Error(plan.String())
	}
}

// TestLabelOf: a conversation that begins with a system event for one person is read
// by that person; one for all who read the room says nothing yet.
func TestLabelOf(t *testing.T) {
	s, _ := open(t)
	for room, readers := range map[history.Timeline]trust.Readers{"!direct": trust.PersonReaders("@a:x"), "!group": trust.RoomReaders("!group")} {
		m := history.Message{Room: room, Role: llm.User, EventID: "event", Text: "what was found", At: time.Now(), Label: trust.Label{Integrity: trust.User, Readers: readers}}
		expect.OK(t, s.Append(t.Context(), &m))
		want := readers
		if readers.Person() == "" {
			want = trust.Nobody
		}
		expect.Equal(t, expect.Must(s.Readers(t.Context(), room))(t), want, room)
	}
}

func TestMove(t *testing.T) {
	s, db := open(t)
	say(t, s, here, "earlier")
	expect.Must(s.StartNew(t.Context(), here))(t)
	say(t, s, here, "one")
	say(t, s, there, "three") // said before the rest was brought along
	say(t, s, here, "two")
	c := history.Compaction{Room: here, Level: history.Summary, Reason: "full", Summary: "They counted.", At: noon}
	expect.OK(t, s.Compact(t.Context(), &c, nil, nil))
	for range 2 {
		expect.OK(t, s.Move(t.Context(), here, there))
	}
	say(t, s, there, "four")
	if got := texts(t, s, there); got != "one|three|two|four" { // in the order it was said
		t.Errorf("the new room's conversation: %s", got)
	}
	expect.Equal(t, expect.Must(s.LatestCompaction(t.Context(), there))(t).Summary, "They counted.", "the summary")
	expect.Equal(t, texts(t, s, here), "", "the old room's conversation")
	say(t, s, here, "afterwards")
	expect.Equal(t, texts(t, s, here), "afterwards", "the old room's conversation")
	var n int
	if err := db.QueryRowContext(t.Context(), `SELECT count(*) FROM message WHERE room = ? AND text = 'earlier' AND conversation = 1`, there).Scan(&n); err != nil || n != 1 {
		t.Errorf("%d rows of the earlier conversation, %v", n, err)
	}
	for _, pair := range [][2]string{{"!nowhere", there}, {there, there}} {
		expect.OK(t, s.Move(t.Context(), history.Timeline(pair[0]), history.Timeline(pair[1])))
	}
	expect.Equal(t, texts(t, s, there), "one|three|two|four", "after moving nothing")
}

// TestTimeline: a room and a thread make a name that gives both back, and no two make the same
// one, whatever a room is called.
func TestTimeline(t *testing.T) {
	for _, room := range []string{"!a:example.org", "!31hneApxJ_1o-63DmFrpeqnkFfWppnzWso1JvH3ogLM", "!with blanks /$x:example.org", "sub:1", "terminal", "thread:$x !a"} {
		for _, root := range []string{"$old:example.org", "$Rqnc-F-dvnEYJTyHq_iKxU2bZ1CI92-kuZq3a5lr5Zg", "$with/and+"} {
			if talk := history.NewTimeline(room, root); talk.Room() != room || talk.Thread() != root {
				t.Errorf("%q and %q became %q: %q and %q", room, root, talk, talk.Room(), talk.Thread())
			}
		}
		for _, root := range []string{"", "$with blank", "$with\nline"} {
			if talk := history.NewTimeline(room, root); string(talk) != room {
				t.Errorf("%q and %q became %q", room, root, talk)
			}
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		id := rapid.StringMatching(`[!$ a:/-]{1,6}`)
		a, b := "!"+id.Draw(t, "room"), "!"+id.Draw(t, "other room")
		x, y := "$"+strings.ReplaceAll(id.Draw(t, "root"), " ", ""), "$"+strings.ReplaceAll(id.Draw(t, "other root"), " ", "")
		if same := history.NewTimeline(a, x) == history.NewTimeline(b, y); same != (a == b && x == y) {
			t.Fatalf("%q %q and %q %q", a, x, b, y)
		}
		if history.NewTimeline(a, x) == history.NewTimeline(b, "") {
			t.Fatalf("the thread %q of %q is the room %q", x, a, b)
		}
	})
}

// TestRedactAnswerInThreads: a redacted answer leaves the summaries of its room,
// and what the threads of that room began with.
func TestRedactAnswerInThreads(t *testing.T) {
	s, _ := open(t)
	room := history.NewTimeline("!room", "")
	for _, m := range []history.Message{
		{Room: room, Role: llm.User, EventID: "$q", Sender: "@me:x", Text: "where is the key?", At: noon},
		{Room: room, Role: llm.Assistant, EventID: "re:$q", Text: "The key of the cellar lies under the third pot.", At: noon},
	} {
		expect.OK(t, s.Append(t.Context(), &m))
	}
	thread := history.NewTimeline("!room", "$q")
	c := history.Compaction{Room: thread, Level: history.Extracted, Reason: "thread", At: noon,
		Summary: "- @me:x: where is the key?\n- you: The key of the cellar lies under the third pot."}
	expect.Must(s.BeginThread(t.Context(), &c))(t)
	expect.OK(t, s.RedactAnswer(t.Context(), "re:$q"))
	left, err := s.LatestCompaction(t.Context(), thread)
	if err != nil || strings.Contains(left.Summary, "third pot") || !strings.Contains(left.Summary, "where is the key?") {
		t.Errorf("the thread begins with %q, %v", left.Summary, err)
	}
}

func forget(t *testing.T, s *history.Store, db *store.DB, texts ...string) (kept int) {
	t.Helper()
	expect.OK(t, store.InTx(t.Context(), db, func(tx *sql.Tx) (err error) {
		kept, err = s.Forget(t.Context(), tx, texts)
		return err
	}))
	return kept
}

// TestForget: what is to be forgotten leaves everything but what people wrote.
func TestForget(t *testing.T) {
	const text = `Jana's "code" is 4711 <ü>`
	s, db := open(t)
	for i, m := range []history.Message{
		{Role: llm.User, Sender: "@a:b", Text: "remember: " + text, Tail: "[note]\n" + text + "\n[/note]", EventID: "$1"},
		{Role: llm.Assistant, Calls: []llm.ToolCall{
			{ID: "1", Name: "append_memory", Arguments: fmt.Sprintf(`{"entry": %q}`, strings.ReplaceAll(text, " ", "  "))},
			{ID: "2", Name: "task", Arguments: `{"content":"water the plants"}`},
			{ID: "3", Name: "odd", Arguments: `not JSON: ` + text}}},
		{Role: llm.Tool, CallID: "1", Text: "Remembered:\n" + text},
		{Role: llm.Assistant, Text: "I know: " + text + "! And tea."},
		{Role: llm.User, Text: "a sub-session found:\n> " + text, EventID: "ended:1"},
		{Role: llm.User, Sender: "@a:b", Text: "thanks", EventID: "$2"},
	} {
		m.Room = here
		if err := s.Append(t.Context(), &m); err != nil {
			t.Fatal(i, err)
		}
	}
	expect.Equal(t, forget(t, s, db, text, ""), 1, "messages of people are said to hold it")
	all, err := s.Load(t.Context(), here)
	if err != nil || len(all) != 6 {
		t.Fatalf("%v, %v", all, err)
	}
	expect.False(t, all[0].Text != "remember: "+text || all[0].Tail != "[note]\n[forgotten]\n[/note]", "%+v", all[0])
	expect.Lacks(t, fmt.Sprintf("%+v", all[1:]), "4711")
	expect.Equal(t, all[1].Calls[1].Arguments, `{"content":"water the plants"}`, "another call became")
	expect.Equal(t, all[3].Text, "I know: [forgotten]! And tea.", "answer")
	for range 2 {
		expect.OK(t, s.Redact(t.Context(), "$1"))
	}
	expect.OK(t, s.Redact(t.Context(), ""))
	if all, err = s.Load(t.Context(), here); err != nil || all[0].Text != "[taken back]" || all[0].Tail != "" || all[5].Text != "thanks" || all[3].Text == "[taken back]" {
		t.Errorf("%+v, %v", all, err)
	}
	expect.Equal(t, forget(t, s, db, text, ""), 0, "messages are said to hold it still")
}

// rows is everything stored of the messages with these ids.
func rows(t testing.TB, db *store.DB, most int64) string {
	t.Helper()
	var all string
	expect.OK(t, db.QueryRow(`SELECT coalesce(group_concat(concat_ws('|', id, room, conversation, role, event_id, sender, header, text, short, tail, calls, call_id, failed, at, retired, compaction, quoted, integrity, readers), char(10) ORDER BY id), '')
		FROM message WHERE id <= ?`, most).Scan(&all))
	return all
}

// TestForgetLeavesSummaries: a forgotten or redacted text leaves the short forms, the
// summaries and what stands beside them as well; other lines stay.
func TestForgetLeavesSummaries(t *testing.T) {
	s, db := open(t)
	var all []history.Message
	for _, m := range []history.Message{
		{Role: llm.User, Sender: "@ada:x", EventID: "$1", Text: "My locker has the number 4711.\nThe dog is called Bruno."},
		{Role: llm.Tool, CallID: "1", Text: "long long long: the code is 9999 and more"},
		{Role: llm.User, Sender: "@ada:x", EventID: "$2", Text: "A secret: my password is swordfish, and more of it"},
		{Role: llm.User, Sender: "@ada:x", EventID: "$3", Text: "well"},
	} {
		m.Room = here
		expect.OK(t, s.Append(t.Context(), &m))
		all = append(all, m)
	}
	all[1].Text, all[2].Text = "the code is 9999", "A secret: my password is swordfish"
	c := history.Compaction{Room: here, Level: history.Extracted, Reason: "full", At: noon, Summary: "Said since, in short:\n- ada: My locker has the number 4711.\n- ada: hello",
		Details: []string{"ada: The dog is called Bruno.", "ada: My locker has the number 4711.", "tool: the code is 9999"}}
	expect.OK(t, s.Compact(t.Context(), &c, all[:1], all[1:3]))
	expect.OK(t, s.Redact(t.Context(), "$1"))
	expect.OK(t, s.Redact(t.Context(), "$2"))
	forget(t, s, db, "the code is 9999")
	now := expect.Must(s.LatestCompaction(t.Context(), here))(t)
	expect.Equal(t, now.Text(), "Said since, in short:\n- ada: hello\n\nWord for word:\n- tool: [forgotten]", "it")
	expect.Equal(t, texts(t, s, here), "[forgotten]|[taken back]|well", "loaded")
	if got := rows(t, db, 1<<60); strings.Contains(got, "9999") || strings.Contains(got, "swordfish") || strings.Contains(got, "4711") {
		t.Errorf("left: %s", got)
	}
}

// quoting appends a message that quotes.
func quoting(t *testing.T, s *history.Store, event, text string, quotes ...history.Quoted) history.Message {
	t.Helper()
	m := history.Message{Room: here, Role: llm.User, EventID: event, Sender: "@ada:example.org", Header: "[now]", Text: text, At: noon, Quoted: quotes,
		Label: trust.Label{Integrity: trust.Guest, Readers: trust.RoomReaders(string(here))}}
	expect.OK(t, s.Append(t.Context(), &m))
	return m
}

// TestQuoted: what a message quotes stands before it, byte for byte as it was stored, and
// leaves it when it is redacted or forgotten.
func TestQuoted(t *testing.T) {
	s, db := open(t)
	m := quoting(t, s, "$1", "and?", history.Quoted{Event: "$a", Text: "eve:\n> the \"code\" is 4711"}, history.Quoted{Event: "$b", Text: "fred:\n> hm"})
	quoting(t, s, "$2", "hm")
	load := func() string {
		t.Helper()
		past, err := s.Load(t.Context(), here)
		if err != nil || past[0].Label.Integrity != trust.Guest {
			t.Fatalf("%+v %v", past, err)
		}
		return past[0].Content()
	}
	if got, want := load(), "[now]\neve:\n> the \"code\" is 4711\nfred:\n> hm\nand?"; got != want || m.Content() != want {
		t.Errorf("it reads %q", got)
	}
	forget(t, s, db, `the "code" is 4711`)
	expect.Equal(t, load(), "[now]\neve:\n> [forgotten]\nfred:\n> hm\nand?", "forgotten, it reads")
	expect.OK(t, s.Redact(t.Context(), "$b"))
	expect.Equal(t, load(), "[now]\neve:\n> [forgotten]\n[taken back]\nand?", "taken back, it reads")
	expect.OK(t, s.Redact(t.Context(), "$1"))
	expect.Equal(t, load(), "[now]\n[taken back]", "with its quotes it reads")
}
