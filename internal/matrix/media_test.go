package matrix_test

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"maunium.net/go/mautrix/event"

	"reverie/internal/chat"
	"reverie/internal/matrix"
	"reverie/internal/matrix/matrixtest"
	"reverie/internal/matrix/peer"
	"reverie/internal/matrix/peer/peertest"
	"reverie/internal/media"
	"reverie/internal/test/expect"
)

var gif = []byte("GIF89a\x01\x00\x01\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff,\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;")

func sendFile(t *testing.T, p *peer.Peer, room string, f peer.File, change func(*event.MessageEventContent)) string {
	t.Helper()
	id := expect.Must(p.SendFile(t.Context(), room, f, change))(t)
	return id
}

// TestFilesIn: received files keep their kind and caption, encrypted and plain.
// Holds F43, M39.
func TestFilesIn(t *testing.T) {
	t.Parallel()
	for _, encrypted := range []bool{false, true} {
		t.Run(fmt.Sprintf("encrypted=%v", encrypted), func(t *testing.T) {
			t.Parallel()
			_, you, b, room := chatting(t, encrypted, echo)
			// The claimed MIME type image/png is ignored.
			sendFile(t, you, room, peer.File{Name: "../cat.png", Caption: "What is this?", Type: "image/png", Image: true, Data: gif}, nil)
			in := b.next()
			if in.Text != "What is this?" || len(in.Files) != 1 {
				t.Fatalf("heard %+v", in)
			}
			f := in.Files[0]
			if f.Name != "cat.png" || f.Type != "image/gif" || f.Size != int64(len(gif)) || f.Kind != chat.ImageFile || f.Note != "" || f.Source != "" {
				t.Errorf("got %+v", f)
			}
			expect.Equal(t, string(expect.Must(os.ReadFile(filepath.Join(b.dir, f.Path)))(t)), string(gif), "kept")
			sendFile(t, you, room, peer.File{Name: "hi.ogg", Voice: true, Type: "audio/ogg", Data: []byte("OggS\x00hello")}, nil)
			if in := b.next(); in.Text != "" || len(in.Files) != 1 || in.Files[0].Kind != chat.VoiceFile || in.Files[0].Type != "application/ogg" {
				t.Errorf("heard %+v", in)
			}
		})
	}
}

// TestBrokenFiles: a message with a broken file is delivered and says why the file is missing.
// Holds F43, M45.
func TestBrokenFiles(t *testing.T) {
	t.Parallel()
	s, you, b := meetingWith(t, echo, func(cfg *matrix.Config) { cfg.Hurry(); cfg.MaxFile = 1000 })
	plain, closed := metIn(t, s, you, b, false), metIn(t, s, you, b, true)
	large := bytes.Repeat([]byte("x"), 1001)
	for _, tt := range []struct {
		name, room string
		file       peer.File
		change     func(*event.MessageEventContent)
		fault      matrixtest.Fault
		note       string
	}{
		{"2 GB claimed", plain, peer.File{Name: "a", Size: 2_000_000_000, Data: []byte("x")}, nil, nil, "larger than"},
		{"small claimed", plain, peer.File{Name: "a", Size: 5, Data: large}, nil, nil, "larger than"},
		{"small claimed, encrypted", closed, peer.File{Name: "a", Size: 5, Data: large}, nil, nil, "larger than"},
		{"length not said", plain, peer.File{Name: "a", Size: 5, Data: large}, nil, matrixtest.WithoutLength(), "larger than"},
		{"404", plain, peer.File{Name: "a", Data: []byte("x")}, nil, matrixtest.Status(http.StatusNotFound, "M_NOT_FOUND"), "does not have it"},
		{"forged", closed, peer.File{Name: "a", Data: []byte("hello")}, nil, matrixtest.FlipBit(), "could not be decrypted"},
		{"broken key", closed, peer.File{Name: "a", Data: []byte("hello")}, func(m *event.MessageEventContent) { m.File.Key.Key = "short" }, nil, "could not be decrypted"},
		{"plain in an encrypted room", closed, peer.File{Name: "a", Data: []byte("x")}, func(m *event.MessageEventContent) { m.URL, m.File = m.File.URL, nil }, nil, "unencrypted"},
		{"no place", plain, peer.File{Name: "a", Data: []byte("x")}, func(m *event.MessageEventContent) { m.URL = "" }, nil, "does not say where"},
		{"no place that there is", plain, peer.File{Name: "a", Data: []byte("x")}, func(m *event.MessageEventContent) { m.URL = "https://example.org/x" }, nil, "does not say where"},
		{"video", plain, peer.File{Name: "a", Data: []byte("x")}, func(m *event.MessageEventContent) { m.MsgType = event.MsgVideo }, nil, "videos"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.fault != nil {
				hook := s.Fault(matrixtest.On("download"), tt.fault)
				defer hook.Remove()
			}
			sendFile(t, you, tt.room, tt.file, tt.change)
			in := b.next()
			if len(in.Files) != 1 || in.Files[0].Path != "" || !strings.Contains(in.Files[0].Note.String(), tt.note) {
				t.Errorf("heard %+v", in)
			}
		})
	}
	if left, err := os.ReadDir(filepath.Join(b.dir, media.Folder)); err == nil && len(left) > 0 {
		t.Errorf("kept: %v", left)
	}
}

// TestFileAfterTrouble: a failed download is retried. Dendrite's refusal with status 200 is not taken for
// the file; a file with the same content is.
// Holds F43.
func TestFileAfterTrouble(t *testing.T) {
	t.Parallel()
	const refusal = `{"Code":429,"JSON":{"errcode":"M_LIMIT_EXCEEDED","error":"too quickly","retry_after_ms":500},"Headers":null}` + "\n"
	refused := func(disposition string) matrixtest.Fault {
		return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
			w.Header().Set("Content-Type", "application/json")
			if disposition != "" {
				w.Header().Set("Content-Disposition", disposition)
			}
			_, _ = w.Write([]byte(refusal))
		}
	}
	s, you, b, room := chatting(t, false, echo)
	for _, c := range []struct {
		file  string
		times int
		fault matrixtest.Fault
	}{{"hello", 2, matrixtest.Status(http.StatusBadGateway, "")}, {"hello", 1, refused("")}, {refusal, 1, refused("inline")}} {
		hook := s.Fault(matrixtest.On("download").Times(c.times), c.fault)
		sendFile(t, you, room, peer.File{Name: "a.json", Data: []byte(c.file)}, nil)
		in := b.next()
		if len(in.Files) != 1 || in.Files[0].Path == "" || hook.Hits() != c.times {
			t.Fatalf("heard %+v after %d failures", in, hook.Hits())
		}
		expect.Equal(t, string(expect.Must(os.ReadFile(filepath.Join(b.dir, in.Files[0].Path)))(t)), c.file, "the file")
		hook.Remove()
	}
}

// TestSlowFile: a slow download delays its own room only, whose messages keep their order; it has a
// timeout.
// Holds F43, M45.
func TestSlowFile(t *testing.T) {
	t.Parallel()
	s, you, b := meetingWith(t, echo, func(cfg *matrix.Config) {
		cfg.Hurry()
		cfg.FetchWithin(3 * time.Second)
	})
	slow, other := metIn(t, s, you, b, false), metIn(t, s, you, b, false)
	hook := s.Fault(matrixtest.On("download"), matrixtest.Drip(50*time.Millisecond))
	sendFile(t, you, slow, peer.File{Name: "a.txt", Caption: "first", Data: bytes.Repeat([]byte("x"), 10_000)}, nil)
	await(t, s, "nothing is fetched", func() bool { return hook.Hits() > 0 })
	say(t, you, slow, "second")
	say(t, you, other, "elsewhere")
	var heard []string
	for range 3 {
		in := b.next()
		heard = append(heard, in.Text)
		if len(in.Files) > 0 && !strings.Contains(in.Files[0].Note.String(), "did not arrive") {
			t.Errorf("got %+v", in.Files)
		}
	}
	expect.Equal(t, strings.Join(heard, ", "), "elsewhere, first, second", "heard")
}

// TestFilesInGroups: a file in a group is for the bot if its caption mentions it, or if a message for the bot replies to it.
// Holds M31.
func TestFilesInGroups(t *testing.T) {
	t.Parallel()
	_, you, other, b, room := groupWithStranger(t, true, echo)
	joined(t, you, room, other.UserID())
	sendFile(t, you, room, peer.File{Name: "mine.gif", Image: true, Data: gif}, nil) // for nobody
	sendFile(t, you, room, peer.File{Name: "mine.gif", Image: true, Caption: "and this?", Mention: b.UserID(), Data: gif}, nil)
	if in := b.next(); in.Text != "and this?" || len(in.Files) != 1 || in.Files[0].Path == "" {
		t.Errorf("heard %+v", in)
	}
	theirs := sendFile(t, other, room, peer.File{Name: "theirs.txt", Data: []byte("their words")}, nil)
	peertest.Next(t, you, func(e peer.Event) bool { return e.ID == theirs })
	expect.Must(you.Reply(t.Context(), room, theirs, "what does it say?", b.UserID()))(t)
	in := b.next()
	if in.Text != "what does it say?" || len(in.Files) != 1 || in.Files[0].Name != "theirs.txt" || in.Files[0].Type != "text/plain" {
		t.Errorf("heard %+v", in)
	}
}

// TestFileOut: a file is uploaded once, encrypted if the room is, and sent once, also after a crash in between.
// Holds M44.
func TestFileOut(t *testing.T) {
	t.Parallel()
	for _, encrypted := range []bool{false, true} {
		t.Run(fmt.Sprintf("encrypted=%v", encrypted), func(t *testing.T) {
			t.Parallel()
			s, you, b, room := chatting(t, encrypted, func(b *bot, in chat.Message) {
				kept, err := media.Open(b.dir, 0).Save(bytes.NewReader(gif), 1000)
				if err != nil {
					t.Error(err)
				}
				for range 2 { // saying it twice is saying it once
					b.tells(in.Room, chat.Outgoing{ID: "file:1", Text: "Here *it* is",
						File: &chat.File{Name: "dot.gif", Type: kept.Type, Size: kept.Size, Path: kept.Path}})
				}
				b.done(in)
			})
			send := s.Fault(matrixtest.On("send").By(b.UserID()), matrixtest.Hang())
			uploads := s.Fault(matrixtest.On("upload").By(b.UserID()), func(w http.ResponseWriter, r *http.Request, next http.Handler) { next.ServeHTTP(w, r) })
			say(t, you, room, "send it")
			b.next()
			await(t, s, "it is not sent", func() bool { return send.Hits() > 0 })
			b.stop()
			send.Remove()
			b = b.again(nil)
			e := peertest.Next(t, you, func(e peer.Event) bool { return e.File != nil })
			if e.File.Name != "dot.gif" || e.File.Caption != "Here *it* is" || e.File.Type != "image/gif" || e.File.Sealed != encrypted || e.Encrypted != encrypted || !e.File.Image || e.File.Width != 1 {
				t.Errorf("got %+v %+v", e, e.File)
			}
			expect.Equal(t, string(expect.Must(you.Download(t.Context(), e))(t)), string(gif), "downloaded")
			expect.Equal(t, uploads.Hits(), 1, "uploads")
			if raw := s.Uploads(); encrypted && bytes.Contains(bytes.Join(raw, nil), gif[:10]) {
				t.Error("it was uploaded in plain")
			}
			b.stop()
			expect.Equal(t, outgoing(s, b, room), 1, "events")
		})
	}
}

// TestFileRefused: the room is told why a file could not be sent.
func TestFileRefused(t *testing.T) {
	t.Parallel()
	s, you, b, room := chatting(t, false, func(b *bot, in chat.Message) {
		for i, path := range []string{"", "media/0123456789abcdef0123456789abcdef.txt"} {
			if path == "" {
				kept, err := media.Open(b.dir, 0).Save(strings.NewReader("hello"), 1000)
				if err != nil {
					t.Error(err)
				}
				path = kept.Path
			}
			b.tells(in.Room, chat.Outgoing{ID: fmt.Sprint("file:", i), File: &chat.File{Name: fmt.Sprintf("f%d.txt", i), Type: "text/plain", Path: path}})
		}
	})
	s.Fault(matrixtest.On("upload").By(b.UserID()), matrixtest.Status(http.StatusRequestEntityTooLarge, "M_TOO_LARGE"))
	say(t, you, room, "send them")
	for _, want := range []string{"f0.txt could not be sent: it is larger than the homeserver accepts.", "f1.txt could not be sent: the file is no longer stored here."} {
		if e := peertest.Next(t, you, messageIn(room)); e.Body != want || !e.Notice {
			t.Errorf("got %+v", e)
		}
	}
}

// essay returns an answer too large for one event; word makes it unique.
func essay(word string) string {
	return strings.Repeat("A paragraph of **"+word+"** and what there is to be said of it, which is much.\n\n", 2500)
}

// outgoing counts the bot's messages in a room.
func outgoing(s *matrixtest.Server, b *bot, room string) (n int) {
	for _, sent := range s.Sends() {
		if sent.User == b.UserID() && sent.Room == room {
			n++
		}
	}
	return n
}

// isRedacted reports whether an event of the bot in a room was redacted.
func isRedacted(s *matrixtest.Server, b *bot, room, id string) bool {
	return slices.ContainsFunc(eventsIn(s, room, b.UserID(), "m.room.message", "m.room.encrypted"), func(e roomEvent) bool {
		return e.ID == id && e.Unsigned.Because != nil
	})
}

// TestLongAnswerIsAFile: an answer too large for one event is sent as its beginning and a file, once, also
// after a crash during the upload or the send.
// Holds F41, M47.
func TestLongAnswerIsAFile(t *testing.T) {
	t.Parallel()
	for _, encrypted := range []bool{false, true} {
		t.Run(map[bool]string{false: "plain", true: "encrypted"}[encrypted], func(t *testing.T) {
			t.Parallel()
			text := essay("words")
			answer := func(b *bot, in chat.Message) {
				for range 2 { // saying it twice is saying it once
					b.tells(in.Room, chat.Outgoing{ID: "re:" + in.ID, Text: text, ReplyTo: in.ID})
				}
			}
			s, you, b, room := chatting(t, encrypted, answer)
			upload := s.Fault(matrixtest.On("upload").By(b.UserID()), matrixtest.Hang())
			say(t, you, room, "tell me all")
			b.next()
			await(t, s, "it is not uploaded", func() bool { return upload.Hits() > 0 })
			b.stop()
			upload.Remove()
			uploads := s.Fault(matrixtest.On("upload").By(b.UserID()), func(w http.ResponseWriter, r *http.Request, next http.Handler) { next.ServeHTTP(w, r) })
			send := s.Fault(matrixtest.On("send").By(b.UserID()), matrixtest.Hang())
			b = b.again(answer)
			b.next() // nothing said that it was handled
			await(t, s, "it is not sent", func() bool { return send.Hits() > 0 })
			b.stop()
			send.Remove()
			b = b.again(answer)
			first, e := arrives(t, you, room, b.UserID(), text)
			if len(first.Body) < 8_000 || first.Encrypted != encrypted {
				t.Errorf("first came %d bytes", len(first.Body))
			}
			if e.File.Name != "answer.md" || e.File.Caption != "" || e.File.Type != "text/markdown" || e.File.Sealed != encrypted || e.Encrypted != encrypted {
				t.Errorf("then came %+v %+v", e, e.File)
			}
			b.next()
			b.stop()
			expect.Equal(t, outgoing(s, b, room), 2, "events")
			expect.Equal(t, uploads.Hits(), 1, "uploads after the one that was cut off")
		})
	}
}

// TestLongAnswerNotUploaded: if a file cannot be uploaded, the room is told once, and the next answer is
// sent. The same answer is not uploaded again.
// Holds F41, M47.
func TestLongAnswerNotUploaded(t *testing.T) {
	t.Parallel()
	s, you, b, room := chatting(t, true, nil)
	uploads := s.Fault(matrixtest.On("upload").By(b.UserID()), matrixtest.Status(http.StatusRequestEntityTooLarge, "M_TOO_LARGE"))
	m := chat.Outgoing{ID: "re:1", Text: essay("words")}
	b.says(room, m, chat.Outgoing{ID: "re:2", Text: "The next answer."})
	if first := peertest.Next(t, you, messageIn(room)); !strings.HasSuffix(first.Body, wholeNote) {
		t.Errorf("first came %q", first.Body)
	}
	come := map[string]int{}
	for range 2 {
		come[peertest.Next(t, you, spoken(room, b.UserID())).Body]++
	}
	if come["answer.md could not be sent: it is larger than the homeserver accepts."] != 1 || come["The next answer."] != 1 {
		t.Errorf("then came %v", come)
	}
	b.says(room, m, chat.Outgoing{ID: "re:3", Text: "The end."}) // said again after a restart
	if e := peertest.Next(t, you, spoken(room, b.UserID())); e.Body != "The end." || uploads.Hits() != 1 {
		t.Errorf("said again: %q, %d uploads", e.Body, uploads.Hits())
	}
}

// TestLongAnswerChanges: a new version of the answer has another file, and the old one is redacted; a short
// version has none; a redacted file may be sent again.
// Holds F41.
func TestLongAnswerChanges(t *testing.T) {
	t.Parallel()
	s, you, b, room := chatting(t, false, nil)
	sayIt := func(text string, draft bool) {
		t.Helper()
		b.says(room, chat.Outgoing{ID: "re:1", Text: text, Draft: draft})
	}
	hear := func(kind peer.Kind) peer.Event {
		t.Helper()
		return peertest.Next(t, you, func(e peer.Event) bool { return e.Room == room && e.Sender == b.UserID() && e.Kind == kind })
	}
	gone := func(event string) {
		t.Helper()
		await(t, s, "it is not taken back", func() bool { return isRedacted(s, b, room, event) })
	}
	sayIt("The beginning of the answer, long enough to be shown", true)
	first := peertest.Next(t, you, messageIn(room))
	old := ""
	for _, word := range []string{"cats", "dogs", "cats"} {
		sayIt(essay(word), false)
		if e := hear(peer.Edit); e.ID != first.ID || !strings.Contains(e.Body, word) {
			t.Errorf("%s: the first message was not edited: %+v", word, e)
		}
		e := hear(peer.Message)
		if e.File == nil {
			t.Fatalf("%s: got %+v", word, e)
		}
		if got, err := you.Download(t.Context(), e); err != nil || string(got) != essay(word) {
			t.Errorf("%s: the file has %d bytes, %v", word, len(got), err)
		}
		if old != "" {
			gone(old)
		}
		old = e.ID
	}
	sayIt("Never mind.", false)
	expect.Equal(t, hear(peer.Edit).Body, "Never mind.", "short")
	gone(old)
	sayIt(essay("birds"), false)
	hear(peer.Edit)
	file := hear(peer.Message)
	expect.OK(t, b.Redact(t.Context(), room, "re:1"))
	gone(first.ID)
	gone(file.ID)
}

// wholeNote ends the beginning of an answer that is a file.
const wholeNote = "\n\n*This is the beginning of a long answer. The full answer is in the file answer.md below.*"

// arrives receives an answer that is sent as its beginning and a file, and returns both messages.
func arrives(t *testing.T, you *peer.Peer, room, bot, want string) (first, file peer.Event) {
	t.Helper()
	first = peertest.Next(t, you, spoken(room, bot))
	if said, noted := strings.CutSuffix(first.Body, wholeNote); !strings.HasPrefix(want, said) || said == "" || !noted {
		t.Errorf("the first message is not the beginning of the answer: %.200q", said)
	}
	if file = peertest.Next(t, you, spoken(room, bot)); file.File == nil {
		t.Fatalf("no file follows, but %v %.60q", file.Kind, file.Body)
	}
	if got, err := you.Download(t.Context(), file); err != nil || string(got) != want {
		t.Errorf("the file has %d bytes, %v; want %d", len(got), err, len(want))
	}
	return first, file
}

// A server that refuses every size does not block later messages: the message is given up.
// Holds F41.
func TestAlwaysTooLarge(t *testing.T) {
	t.Parallel()
	s, you, b, room := chatting(t, false, nil)
	hook := s.Fault(func(r *matrixtest.Request) bool {
		return (r.Endpoint == "send" || r.Endpoint == "upload") && r.User == b.UserID() && !strings.Contains(string(r.Body), `"then"`)
	}, matrixtest.Status(http.StatusRequestEntityTooLarge, "M_TOO_LARGE"))
	b.says(room, chat.Outgoing{ID: "1", Text: strings.Repeat("unloved words ", 2000)}, chat.Outgoing{ID: "2", Text: "then"})
	hears(t, you, room, "then")
	await(t, s, "not given up", func() bool { return b.Status(t.Context()).Dead == 1 && b.Status(t.Context()).Outbox == 0 })
	if n := hook.Hits(); n > 2 {
		t.Errorf("%d tries", n)
	}
}
