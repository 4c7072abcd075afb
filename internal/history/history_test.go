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

	"github.com/google/go-cmp/cmp"

	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/store/storetest"
	"reverie/internal/trust"
)

const here, there = "!here:example.org", "!there:example.org"

var noon = time.Date(2026, 11, 21, 12, 0, 0, 123_000_000, time.UTC)

func open(t testing.TB) (*history.Store, *sql.DB) {
	t.Helper()
	db := must(storetest.Open(t, filepath.Join(t.TempDir(), "bot.db")))(t)
	t.Cleanup(func() { _ = db.Close() })
	return history.NewStore(db), db
}

// must is a value that comes without an error.
func must[T any](v T, err error) func(failer) T {
	return func(t failer) T {
		t.Helper()
		noError(t, err)
		return v
	}
}

// failer is a test, or a part of one that rapid makes.
type failer interface {
	Helper()
	Fatal(...any)
}

// noError ends the test after an error.
func noError(t failer, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func say(t testing.TB, s *history.Store, room, text string) history.Message {
	t.Helper()
	m := history.Message{Room: history.Talk(room), Role: llm.User, Text: text, At: noon}
	noError(t, s.Append(t.Context(), &m))
	return m
}

func texts(t testing.TB, s *history.Store, room string) string {
	t.Helper()
	all := must(s.Load(t.Context(), history.Talk(room)))(t)
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
		if got := m.Content(); got != want {
			t.Errorf("%+v: %q, want %q", m, got, want)
		}
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
		noError(t, s.Append(t.Context(), &want[i]))
		if want[i].ID == 0 || want[i].Conversation != 1 {
			t.Errorf("message %d got ID %d, conversation %d", i, want[i].ID, want[i].Conversation)
		}
	}
	got := must(s.Load(t.Context(), here))(t)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if !want[3].Failed {
		t.Error("the failed result counts as done")
	}
	if want[0].Text != "茶 🫖\x00\r\n\u2028 'q\"" || want[1].Calls[1].Arguments != "not json {" {
		t.Errorf("Append changed %+v", want)
	}
}

// TestKnownEvents: an event that comes again, even after a new conversation or
// when it was retired, is told apart from a new one.
func TestKnownEvents(t *testing.T) {
	s, _ := open(t)
	first := history.Message{Room: here, Role: llm.User, EventID: "$e", Text: "once", Sender: "@me:x", At: noon}
	noError(t, s.Append(t.Context(), &first))
	check := func(when string) {
		t.Helper()
		again := history.Message{Room: here, Role: llm.User, EventID: "$e", Text: "twice", At: noon.Add(time.Hour)}
		if err := s.Append(t.Context(), &again); !errors.Is(err, history.ErrKnown) {
			t.Errorf("%s: error %v", when, err)
		}
		if diff := cmp.Diff(first, again); diff != "" {
			t.Errorf("%s: not the stored row:\n%s", when, diff)
		}
	}
	check("at once")
	noError(t, s.Retire(t.Context(), here, 0))
	check("retired")
	must(s.StartNew(t.Context(), here))(t)
	check("in a new conversation")
	elsewhere := history.Message{Room: there, Role: llm.User, EventID: "$e", Text: "other", At: noon}
	if err := s.Append(t.Context(), &elsewhere); err != nil {
		t.Errorf("the same id in another room: %v", err)
	}
	for range 2 { // what has no id is never known
		say(t, s, there, "same")
	}
	if got := texts(t, s, there); got != "other|same|same" {
		t.Errorf("got %q", got)
	}
}

func TestConversations(t *testing.T) {
	s, db := open(t)
	if got := texts(t, s, here); got != "" {
		t.Errorf("an unknown room holds %q", got)
	}
	say(t, s, here, "one")
	say(t, s, there, "other")
	say(t, s, here, "two")
	n, err := s.StartNew(t.Context(), here)
	if err != nil || n != 2 {
		t.Fatalf("StartNew = %d, %v", n, err)
	}
	if got := texts(t, s, here); got != "" {
		t.Errorf("a new conversation holds %q", got)
	}
	if m := say(t, s, here, "three"); m.Conversation != 2 {
		t.Errorf("conversation %d", m.Conversation)
	}
	if got := texts(t, s, here) + " " + texts(t, s, there); got != "three other" {
		t.Errorf("got %q", got)
	}
	var kept int
	if err := db.QueryRow(`SELECT count(*) FROM message WHERE room = ?`, here).Scan(&kept); err != nil || kept != 3 {
		t.Errorf("%d of 3 messages are kept, %v", kept, err)
	}
	if n, err := s.StartNew(t.Context(), "!fresh"); err != nil || n != 1 {
		t.Errorf("StartNew in a fresh room = %d, %v", n, err)
	}
	if m := say(t, s, "!fresh", "x"); m.Conversation != 1 {
		t.Errorf("conversation %d", m.Conversation)
	}
	if rooms, err := s.Rooms(t.Context()); err != nil || !cmp.Equal(rooms, []string{"!fresh", here, there}) {
		t.Errorf("rooms %v, %v", rooms, err)
	}
}

func TestRetire(t *testing.T) {
	s, db := open(t)
	question := say(t, s, here, "question")
	say(t, s, there, "other")
	say(t, s, here, "call")
	say(t, s, here, "answer")
	noError(t, s.Retire(t.Context(), here, question.ID))
	say(t, s, here, "better answer")
	if got := texts(t, s, here) + " " + texts(t, s, there); got != "question|better answer other" {
		t.Errorf("got %q", got)
	}
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
		tx := must(db.BeginTx(t.Context(), nil))(t)
		defer tx.Rollback()
		if err := s.SetTail(t.Context(), tx, id, tail, trust.Owner); err != nil {
			return err
		}
		if commit {
			return tx.Commit()
		}
		return nil
	}
	noError(t, set(m.ID, "kept", true))
	noError(t, set(m.ID, "rolled back", false))
	if err := set(m.ID+1, "x", true); err == nil {
		t.Error("set the tail of no message")
	}
	got, err := s.Load(t.Context(), here)
	if err != nil || got[0].Content() != "text\n\nkept" {
		t.Errorf("%+v, %v", got, err)
	}
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
				m := history.Message{Room: history.Talk(fmt.Sprint(r)), Role: llm.User, EventID: fmt.Sprint("$", i), Text: fmt.Sprint(i), At: noon.Add(-time.Duration(i) * time.Hour)}
				if err := s.Append(t.Context(), &m); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	seen := map[int64]bool{}
	for r := range rooms {
		all, err := s.Load(t.Context(), history.Talk(fmt.Sprint(r)))
		if err != nil || len(all) != each {
			t.Fatalf("room %d: %d messages, %v", r, len(all), err)
		}
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
	rows, err := db.Query(`EXPLAIN QUERY PLAN SELECT text FROM message WHERE room = ?1 AND conversation = (SELECT conversation FROM room WHERE id = ?1) AND retired = 0 ORDER BY id`, here)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var plan strings.Builder
	for rows.Next() {
		var a, b, c int
		var detail string
		noError(t, rows.Scan(&a, &b, &c, &detail))
		plan.WriteString(detail + "\n")
	}
	if !strings.Contains(plan.String(), "message_by_conversation") || strings.Contains(plan.String(), "TEMP B-TREE") {
		t.Error(plan.String())
	}
}

// TestReadersOfAnEvent: a conversation that begins with a system event for one person is read
// by that person; one for all who read the room says nothing yet.
func TestReadersOfAnEvent(t *testing.T) {
	s, _ := open(t)
	for room, readers := range map[history.Talk]trust.Readers{"!direct": trust.Person("@a:x"), "!group": trust.Room("!group")} {
		m := history.Message{Room: room, Role: llm.User, EventID: "event", Text: "what was found", At: time.Now(), Label: trust.Label{Integrity: trust.User, Readers: readers}}
		noError(t, s.Append(t.Context(), &m))
		want := readers
		if readers.Person() == "" {
			want = trust.Nobody
		}
		if got, err := s.Readers(t.Context(), room); err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", room, got, err, want)
		}
	}
}

func TestMove(t *testing.T) {
	s, db := open(t)
	say(t, s, here, "earlier")
	must(s.StartNew(t.Context(), here))(t)
	say(t, s, here, "one")
	say(t, s, there, "three") // said before the rest was brought along
	say(t, s, here, "two")
	c := history.Compaction{Room: here, Level: history.Summary, Reason: "full", Summary: "They counted.", At: noon}
	noError(t, s.Compact(t.Context(), &c, nil, nil))
	for range 2 {
		noError(t, s.Move(t.Context(), here, there))
	}
	say(t, s, there, "four")
	if got := texts(t, s, there); got != "one|three|two|four" { // in the order it was said
		t.Errorf("the new room's conversation: %s", got)
	}
	if c, err := s.Compacted(t.Context(), there); err != nil || c.Summary != "They counted." {
		t.Errorf("the summary: %+v, %v", c, err)
	}
	if got := texts(t, s, here); got != "" {
		t.Errorf("the old room's conversation: %s", got)
	}
	say(t, s, here, "afterwards")
	if got := texts(t, s, here); got != "afterwards" {
		t.Errorf("the old room's conversation: %s", got)
	}
	var n int
	if err := db.QueryRowContext(t.Context(), `SELECT count(*) FROM message WHERE room = ? AND text = 'earlier' AND conversation = 1`, there).Scan(&n); err != nil || n != 1 {
		t.Errorf("%d rows of the earlier conversation, %v", n, err)
	}
	for _, pair := range [][2]string{{"!nowhere", there}, {there, there}} {
		if err := s.Move(t.Context(), history.Talk(pair[0]), history.Talk(pair[1])); err != nil {
			t.Error(err)
		}
	}
	if got := texts(t, s, there); got != "one|three|two|four" {
		t.Errorf("after moving nothing: %s", got)
	}
}
