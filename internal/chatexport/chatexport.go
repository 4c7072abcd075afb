// Package chatexport reads what a person wrote in the data exports of ChatGPT and Claude.
//
// Both services send a zip with conversations.json, large accounts several (conversations-000.json),
// each a JSON array of conversations. The answers of the assistant are left out: they are another
// model's words, and no source of facts about the person.
package chatexport

import (
	"archive/zip"
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"time"
)

// Conversation is one conversation with the messages of the person, oldest first.
type Conversation struct {
	Service  string // chatgpt or claude
	ID       string
	Messages []Message
}

// Message is what the person wrote. ID is unique within the service.
type Message struct {
	ID   string
	Text string    // not empty
	At   time.Time // zero if the export does not say
}

// ErrNoExport means that a file is no export of conversations.
var ErrNoExport = errors.New("it has no conversations of ChatGPT or Claude: give the zip that the service sent, or its conversations.json")

// Is reports whether name may be an export: a zip, or a JSON array. It reads only its beginning.
func Is(name string) bool {
	f, err := os.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	head, _ := bufio.NewReader(f).Peek(64) // shorter files are fine
	text := strings.TrimLeft(strings.TrimPrefix(string(head), "\uFEFF"), " \t\r\n")
	return strings.HasPrefix(text, "PK\x03\x04") || strings.HasPrefix(text, "[")
}

// Each calls do with each conversation of the file name that has messages of the person. It stops at
// the first error. An error of the file names the place.
func Each(name string, do func(Conversation) error) error {
	archive, err := zip.OpenReader(name)
	if errors.Is(err, zip.ErrFormat) {
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		return readFile(name, f, do)
	}
	if err != nil {
		return err
	}
	defer archive.Close()
	found := false
	for _, file := range archive.File {
		base := path.Base(file.Name)
		if !strings.HasPrefix(base, "conversations") || path.Ext(base) != ".json" {
			continue
		}
		found = true
		f, err := file.Open()
		if err == nil {
			err = errors.Join(readFile(name+": "+file.Name, f, do), f.Close())
		}
		if err != nil {
			return err
		}
	}
	if !found {
		return fmt.Errorf("%s: %w", name, ErrNoExport)
	}
	return nil
}

// readFile reads one JSON array, a conversation at a time.
func readFile(name string, r io.Reader, do func(Conversation) error) error {
	in := bufio.NewReader(r)
	if bom, _ := in.Peek(3); string(bom) == "\uFEFF" {
		_, _ = in.Discard(3) // they are buffered
	}
	decoder := json.NewDecoder(in)
	if start, err := decoder.Token(); err != nil || start != json.Delim('[') {
		return fmt.Errorf("%s: %w", name, ErrNoExport)
	}
	for n := 1; decoder.More(); n++ {
		var c exported
		if err := decoder.Decode(&c); err != nil {
			return fmt.Errorf("%s: conversation %d: %w", name, n, err)
		}
		out, ok := c.conversation()
		if !ok {
			return fmt.Errorf("%s: conversation %d: %w", name, n, ErrNoExport)
		}
		if len(out.Messages) == 0 {
			continue
		}
		if err := do(out); err != nil {
			return err
		}
	}
	_, err := decoder.Token()
	if err != nil {
		return fmt.Errorf("%s: the file is cut off: %w", name, err)
	}
	return nil
}

// exported is a conversation of either service.
type exported struct {
	// ChatGPT: a tree of messages; regenerated answers are branches. CurrentNode is the newest leaf.
	ID             string          `json:"id"`
	ConversationID string          `json:"conversation_id"`
	CreateTime     float64         `json:"create_time"` // Unix seconds
	CurrentNode    string          `json:"current_node"`
	Mapping        map[string]node `json:"mapping"`

	// Claude: a list.
	UUID         string          `json:"uuid"`
	CreatedAt    time.Time       `json:"created_at"`
	ChatMessages []claudeMessage `json:"chat_messages"`
}

type node struct {
	Parent  string `json:"parent"`
	Message *struct {
		ID     string `json:"id"`
		Author struct {
			Role string `json:"role"`
		} `json:"author"`
		CreateTime float64 `json:"create_time"`
		Content    struct {
			Type  string            `json:"content_type"`
			Parts []json.RawMessage `json:"parts"` // strings; pictures are objects
		} `json:"content"`
		Metadata struct {
			Hidden bool `json:"is_visually_hidden_from_conversation"`
		} `json:"metadata"`
	} `json:"message"`
}

type claudeMessage struct {
	UUID      string    `json:"uuid"`
	Sender    string    `json:"sender"`
	Text      string    `json:"text"`
	CreatedAt time.Time `json:"created_at"`
}

func (c exported) conversation() (Conversation, bool) {
	switch {
	case c.Mapping != nil:
		return c.chatGPT(), true
	case c.UUID != "":
		out := Conversation{Service: "claude", ID: c.UUID}
		for i, m := range c.ChatMessages {
			if m.Sender == "human" {
				out.add(cmp.Or(m.UUID, fmt.Sprintf("%s/%d", c.UUID, i)), m.Text, m.CreatedAt, c.CreatedAt)
			}
		}
		return out, true
	}
	return Conversation{}, false
}

// chatGPT follows the branch that the person saw last. Without one it takes all messages by time.
func (c exported) chatGPT() Conversation {
	out := Conversation{Service: "chatgpt", ID: cmp.Or(c.ConversationID, c.ID)}
	var branch []string
	for id := c.CurrentNode; id != "" && len(branch) <= len(c.Mapping); id = c.Mapping[id].Parent {
		branch = append(branch, id)
	}
	slices.Reverse(branch)
	if len(branch) == 0 || len(branch) > len(c.Mapping) { // a ring is no branch
		branch = slices.SortedFunc(maps.Keys(c.Mapping), func(a, b string) int {
			return cmp.Or(cmp.Compare(c.Mapping[a].time(), c.Mapping[b].time()), cmp.Compare(a, b))
		})
	}
	for _, id := range branch {
		m := c.Mapping[id].Message
		if m == nil || m.Author.Role != "user" || m.Metadata.Hidden || m.Content.Type != "text" && m.Content.Type != "multimodal_text" {
			continue
		}
		var texts []string
		for _, part := range m.Content.Parts {
			var text string
			if json.Unmarshal(part, &text) == nil {
				texts = append(texts, text)
			}
		}
		out.add(cmp.Or(m.ID, id), strings.Join(texts, "\n"), unix(m.CreateTime), unix(c.CreateTime))
	}
	return out
}

func (n node) time() float64 {
	if n.Message == nil {
		return 0
	}
	return n.Message.CreateTime
}

// add adds a message unless it is empty. Its time is the first of times within reason.
func (c *Conversation) add(id, text string, times ...time.Time) {
	m := Message{ID: id, Text: strings.TrimSpace(text)}
	for _, at := range times {
		if m.At.IsZero() && at.Year() > 2000 && at.Year() < 3000 {
			m.At = at
		}
	}
	if m.Text != "" {
		c.Messages = append(c.Messages, m)
	}
}

func unix(seconds float64) time.Time { return time.Unix(int64(min(max(seconds, 0), 1e11)), 0).UTC() }
