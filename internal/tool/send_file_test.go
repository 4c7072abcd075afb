package tool

import (
	"context"
	"io"
	"strings"
	"testing"

	"reverie/internal/media"
)

// sent is a scope whose files go into the slice.
func (w *workshop) sending(scope Scope, to *[]Outgoing) Scope {
	scope.Send = func(_ context.Context, f Outgoing) error {
		*to = append(*to, f)
		return nil
	}
	return scope
}

// Holds M44.
func TestSendFile(t *testing.T) {
	w := newWorkshop(t)
	put(t, w.dir, "skills/tea.md", "steep for four minutes")
	var sent []Outgoing
	scope := w.sending(direct(), &sent)
	res := w.call(t, scope, SendFile, `{"path": "data/skills/tea.md", "caption": "As you like it"}`)
	if res.Failed || len(sent) != 1 || sent[0].Name != "tea.md" || sent[0].Caption != "As you like it" || sent[0].Type != "text/plain" {
		t.Fatalf("%+v, sent %+v", res, sent)
	}
	put(t, w.dir, "skills/tea.md", "something else") // what is on its way does not change any more
	f := result(w.cfg.Media.Open(sent[0].Path))(t)
	defer f.Close()
	if b, err := io.ReadAll(f); err != nil || string(b) != "steep for four minutes" {
		t.Errorf("kept %q, %v", b, err)
	}
	put(t, w.dir, "skills/page.md", "<!DOCTYPE html><script>alert(1)</script>")
	if res := w.call(t, scope, SendFile, `{"path": "data/skills/page.md"}`); res.Failed || len(sent) != 2 || sent[1].Type != "text/plain" {
		t.Errorf("%+v, sent %+v", res, sent)
	}
}

// TestSendFileRefuses: what may not be read is not sent, and nothing is sent for
// nobody.
func TestSendFileRefuses(t *testing.T) {
	w := newWorkshop(t)
	for _, name := range []string{"matrix/account.json", "secret.key", "skills/.hidden.md", "memories/other.txt", "dreams/x.db"} {
		put(t, w.dir, name, canary)
	}
	put(t, w.dir, "skills/tea.md", "tea")
	kept := result(w.cfg.Media.Keep(strings.NewReader(canary), 1000))(t)
	var sent []Outgoing
	scope := w.sending(direct(), &sent)
	for _, p := range []string{
		"bot.db", "data/bot.db", "matrix/account.json", "data/matrix/account.json", "secret.key", "skills/.hidden.md", "memories/other.txt", "dreams/x.db",
		"../data/skills/tea.md", "/etc/passwd", "skills/../bot.db", "skills", ".", "media", "media/../bot.db", kept.Path,
	} {
		if res := w.call(t, scope, SendFile, `{"path": "`+p+`"}`); !res.Failed || len(sent) > 0 {
			t.Errorf("%s: %+v, sent %v", p, res, sent)
		}
	}
	system := scope
	system.System = true
	for _, s := range []Scope{direct(), system} {
		if res := w.call(t, s, SendFile, `{"path": "skills/tea.md"}`); !res.Failed || len(sent) > 0 {
			t.Errorf("sent for nobody: %+v", res)
		}
	}
}

// TestFilesOfAConversation: what came here may be read and sent, and what came elsewhere
// may not.
func TestFilesOfAConversation(t *testing.T) {
	w := newWorkshop(t)
	kept := result(w.cfg.Media.Keep(strings.NewReader("first line\nsecond line\n"), 1000))(t)
	var sent []Outgoing
	here := w.sending(group(), &sent)
	here.Files = map[string]string{kept.Path: "list.txt"}
	if res := w.call(t, here, "read_file", `{"path": "data/`+kept.Path+`", "offset": 2}`); res.Failed || !strings.Contains(res.Content, "second line") {
		t.Errorf("%+v", res)
	}
	if res := w.call(t, here, SendFile, `{"path": "data/`+kept.Path+`"}`); res.Failed || len(sent) != 1 || sent[0].Name != "list.txt" || sent[0].Path != kept.Path {
		t.Errorf("%+v, sent %+v", res, sent)
	}
	for _, p := range []string{kept.Path, media.Folder} {
		if res := w.call(t, group(), "read_file", `{"path": "data/`+p+`"}`); !res.Failed || strings.Contains(res.Content, "line") {
			t.Errorf("%s elsewhere: %+v", p, res)
		}
	}
}
