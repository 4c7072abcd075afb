package chatexport

import (
	"archive/zip"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reverie/internal/test/expect"
)

// chatGPT has a question that was edited: its first version is a branch that nobody saw last.
const chatGPT = `[{"title":"Boat","create_time":1767225600.5,"conversation_id":"c1","current_node":"n5","mapping":{
 "n0":{"id":"n0","message":null,"parent":null,"children":["n1"]},
 "n1":{"id":"n1","parent":"n0","message":{"id":"m1","author":{"role":"user"},"create_time":1767225601,"content":{"content_type":"text","parts":["My boat is called Ida."]},"metadata":{}}},
 "n2":{"id":"n2","parent":"n1","message":{"id":"m2","author":{"role":"assistant"},"create_time":1767225602,"content":{"content_type":"text","parts":["A nice name."]}}},
 "n3":{"id":"n3","parent":"n2","message":{"id":"m3","author":{"role":"user"},"create_time":1767225603,"content":{"content_type":"text","parts":["I never saw this."]}}},
 "n4":{"id":"n4","parent":"n2","message":{"id":"m4","author":{"role":"user"},"create_time":null,"content":{"content_type":"multimodal_text","parts":[{"asset_pointer":"file"},"It lies in Kiel."]}}},
 "n5":{"id":"n5","parent":"n4","message":{"id":"m5","author":{"role":"user"},"content":{"content_type":"user_editable_context","parts":null},"metadata":{"is_visually_hidden_from_conversation":true}}}}},
 {"title":"empty","id":"c2","mapping":{}}]`

const claude = `[{"uuid":"u1","name":"Tea","created_at":"2026-01-02T03:04:05.000000Z","chat_messages":[
 {"uuid":"a","sender":"human","text":" I drink green tea. ","created_at":"2026-01-02T03:04:06Z"},
 {"uuid":"b","sender":"assistant","text":"Good."},{"uuid":"c","sender":"human","text":""},{"uuid":"d","sender":"human","text":"And at night none."}]}]`

func write(t testing.TB, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "conversations.json")
	expect.OK(t, os.WriteFile(name, []byte(text), 0o600))
	return name
}

func zipped(t testing.TB, files map[string]string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "export.zip")
	f := expect.Must(os.Create(name))(t)
	z := zip.NewWriter(f)
	for path, text := range files {
		expect.Must(expect.Must(z.Create(path))(t).Write([]byte(text)))(t)
	}
	expect.OK(t, errors.Join(z.Close(), f.Close()))
	return name
}

func read(name string) (all []Conversation, err error) {
	err = Each(name, func(c Conversation) error { all = append(all, c); return nil })
	return all, err
}

// TestEach: only the person's own words are read, of the branch that they saw last.
func TestEach(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	boat := Conversation{Service: "chatgpt", ID: "c1", Messages: []Message{
		{"m1", "My boat is called Ida.", at.Add(time.Second)}, {"m4", "It lies in Kiel.", at}}}
	begun := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	tea := Conversation{Service: "claude", ID: "u1", Messages: []Message{
		{"a", "I drink green tea.", begun.Add(time.Second)}, {"d", "And at night none.", begun}}}
	for _, c := range []struct {
		name string
		want []Conversation
	}{
		{write(t, chatGPT), []Conversation{boat}},
		{write(t, "\uFEFF \n"+claude), []Conversation{tea}},
		{zipped(t, map[string]string{"a/conversations-000.json": chatGPT, "user.json": "{}"}), []Conversation{boat}},
		{zipped(t, map[string]string{"conversations.json": claude}), []Conversation{tea}},
	} {
		expect.Equal(t, Is(c.name), true, c.name)
		expect.NoDiff(t, expect.Must(read(c.name))(t), c.want)
	}
}

// TestFaults: each says where it is, and what to give instead.
func TestFaults(t *testing.T) {
	for want, name := range map[string]string{
		"conversation 2: ":                    write(t, claude[:len(claude)-1]+`, {"uuid": 3}]`),
		"conversation 1: it has no":           write(t, `[{"text": "a memory"}]`),
		"the file is cut off":                 write(t, strings.TrimSuffix(claude, "]")),
		"conversations.json: conversation 1:": zipped(t, map[string]string{"conversations.json": claude[:200]}),
		"it has no conversations of ChatGPT":  zipped(t, map[string]string{"user.json": "[]"}),
		"export.zip: it has no":               zipped(t, nil),
	} {
		if _, err := read(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	expect.Equal(t, Is(write(t, `{"text": "a memory"}`)), false, "JSON lines")
	expect.Equal(t, Is("/nowhere"), false, "no file")
}

// TestRing: parents in a ring end, and all messages are read.
func TestRing(t *testing.T) {
	all := expect.Must(read(write(t, strings.ReplaceAll(chatGPT, `"parent":"n0"`, `"parent":"n4"`))))(t)
	expect.Equal(t, len(all[0].Messages), 3)
}

func FuzzRead(f *testing.F) {
	f.Add(chatGPT)
	f.Add(claude)
	f.Fuzz(func(t *testing.T, text string) {
		_ = readFile("file", strings.NewReader(text), func(c Conversation) error {
			for _, m := range c.Messages {
				if m.Text == "" || !m.At.IsZero() && (m.At.Year() < 1999 || m.At.Year() > 3001) {
					t.Errorf("%+v", m)
				}
			}
			return nil
		})
	})
}
