package session

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"reverie/internal/chat"
	"reverie/internal/history"
	"reverie/internal/i18n"
	"reverie/internal/llm"
	"reverie/internal/media"
	"reverie/internal/tool"
)

const (
	defaultFileText = 40_000 // characters of a file that the model gets
	leastFileText   = 400    // less of a file helps nobody
	fileShare       = 4      // a file takes a quarter of the window at most, and all of a message half of it
	fileTime        = time.Minute
)

const voiceMark = "[voice message, transcribed]"

// withVoice is what a message reads whose words beside a voice message are now: what was
// said in it, as was has it, stays.
func withVoice(was, now string) string {
	_, spoken, ok := strings.Cut("\n"+was, "\n"+voiceMark+" ")
	if !ok || strings.Contains(now, voiceMark) {
		return now
	}
	return strings.TrimSpace(now + "\n" + voiceMark + " " + spoken)
}

// files is what the model will get of what came with in.
func (s *Session) files(ctx context.Context, in chat.Inbound) []history.File {
	var all []history.File
	for _, f := range in.Files {
		if f.Kind == chat.VoiceFile && f.Note == "" {
			continue // its words are the message's
		}
		all = append(all, s.file(ctx, f, len(in.Files)))
	}
	return all
}

// file is what the model gets of f, which came with so many files.
func (s *Session) file(ctx context.Context, f chat.File, came int) history.File {
	h := history.File{Name: f.Name, Type: f.Type, Size: f.Size, Path: f.Path, Note: f.Note}
	if h.Note != "" || s.cfg.Media == nil || f.Path == "" {
		if h.Note == "" {
			h.Note = i18n.New("why.file_unread")
		}
		return h
	}
	ctx, cancel := context.WithTimeout(ctx, fileTime)
	defer cancel()
	var err error
	switch {
	case strings.HasPrefix(f.Type, "image/"):
		var p media.Picture
		if p, err = s.cfg.Media.Picture(f.Path); err == nil {
			h.Picture, h.Width, h.Height, h.W, h.H = p.Path, p.Width, p.Height, p.W, p.H
			return h
		}
	case f.Kind == chat.AudioFile && sounds(f.Type):
		var text string
		if text, err = s.transcript(ctx, f); err == nil {
			h.Text = "(what is said in it)\n" + s.capped(text, came)
			return h
		}
		if why := i18n.Of(err); why.Known() {
			err = i18n.New("why.not_transcribed", "why", why)
		}
	default:
		var text string
		if text, err = s.cfg.Media.Text(ctx, f.Path, f.Type); err == nil {
			s.excerpt(&h, text, came)
			return h
		}
	}
	s.log.Info("a file cannot be read", "type", f.Type, "size", f.Size, "err", err)
	h.Note = s.fileReason(ctx, err, f)
	return h
}

// sounds reports whether a type may be a recording.
func sounds(kind string) bool {
	return strings.HasPrefix(kind, "audio/") || kind == "application/ogg" || kind == "video/mp4" || kind == "video/webm" || kind == "application/octet-stream"
}

// fileReason is why nothing came of a file, for people.
func (s *Session) fileReason(ctx context.Context, err error, f chat.File) i18n.Text {
	var at *fs.PathError
	switch {
	case ctx.Err() != nil:
		return i18n.New("why.file_long")
	case errors.As(err, &at), errors.Is(err, fs.ErrNotExist):
		return i18n.New("why.file_lost")
	}
	return i18n.New("why.file_of_kind", "why", i18n.Of(err), "type", f.Type, "size", media.Size(f.Size))
}

// excerpt has the model get the beginning of a text, see capped.
func (s *Session) excerpt(h *history.File, text string, came int) {
	h.Text = s.capped(text, came)
	if len(h.Text) < len(text) {
		h.More = media.Beside(h.Path)
	}
	if strings.TrimSpace(h.Text) == "" {
		h.Text, h.Note = "", i18n.New("why.file_empty")
	}
}

// capped is the beginning of a file's text; the files of one message share a part of the window.
func (s *Session) capped(text string, came int) string {
	window, out := s.cfg.Models.Window(chatRole)
	tokens, most := max((window-out)/max(fileShare, came), 100), s.cfg.FileText
	short := media.Cap(text, most)
	for llm.EstimateTokens(short) > tokens && most > leastFileText {
		most = min(most, utf8.RuneCountInString(text)) * 3 / 4
		short = media.Cap(text, most)
	}
	return short
}

// pictured reports whether a conversation has pictures.
func pictured(past []history.Message) bool {
	return slices.ContainsFunc(past, func(m history.Message) bool {
		return slices.ContainsFunc(m.Files, func(f history.File) bool { return f.Picture != "" })
	})
}

// listen writes down what is said in the voice messages of a burst. What cannot be
// understood is said in their notes.
func (s *Session) listen(ctx context.Context, burst []chat.Inbound) ([]chat.Inbound, error) {
	out := make([]chat.Inbound, 0, len(burst))
	for _, in := range burst {
		for i, f := range in.Files {
			if f.Kind != chat.VoiceFile || f.Note != "" {
				continue
			}
			if _, heard, err := s.cfg.History.Said(ctx, s.talk, in.ID); err != nil {
				return nil, err
			} else if heard {
				break // before an interruption
			}
			files := append([]chat.File(nil), in.Files...)
			text, err := s.transcript(ctx, f)
			switch {
			case ctx.Err() != nil:
				return nil, ctx.Err()
			case err != nil:
				files[i].Note = i18n.Of(err)
			default:
				in.Text = strings.TrimSpace(in.Text + "\n" + voiceMark + " " + text)
			}
			in.Files = files
		}
		out = append(out, in)
	}
	return out, nil
}

var errDeaf = i18n.New("why.no_transcription")

func (s *Session) transcript(ctx context.Context, f chat.File) (string, error) {
	if !s.cfg.Models.Hears() || s.cfg.Media == nil {
		return "", errDeaf
	}
	s.cfg.Transport.Typing(ctx, s.room, true)
	name := path.Base(f.Path)
	if strings.HasSuffix(name, ".bin") { // servers go by the ending
		name = strings.TrimSuffix(name, ".bin") + ".ogg"
	}
	text, err := s.cfg.Models.Transcribe(ctx, s.cfg.Media.File(f.Path), name)
	var model *llm.Error
	if errors.As(err, &model) {
		s.log.Error("not transcribed", "err", err)
		return "", model.Kind.Why()
	}
	return text, err
}

// unopened is what a person is told whose message was nothing but files that could not
// be had, or heard; "" = the model answers.
func (s *Session) unopened(ctx context.Context, burst []chat.Inbound) string {
	if len(burst) != 1 || len(burst[0].Files) == 0 || strings.TrimSpace(burst[0].Text) != "" {
		return ""
	}
	var lines []string
	for _, f := range burst[0].Files {
		switch {
		case f.Note == "":
			return ""
		case f.Kind == chat.VoiceFile && f.Note == errDeaf:
			lines = append(lines, s.text(ctx, "files.deaf"))
		default:
			lines = append(lines, s.text(ctx, "files.unopened", "name", f.Name, "why", s.cfg.Messages.Why(ctx, s.room, f.Note)))
		}
	}
	return strings.Join(lines, "\n")
}

// came lists the files that came in a conversation, for tools: as they are and as text.
func came(past []history.Message) map[string]string {
	all := map[string]string{}
	for i := range past {
		for j := range past[i].Files {
			if f := &past[i].Files[j]; f.Path != "" {
				all[f.Path], all[media.Beside(f.Path)] = f.Name, f.Name
			}
		}
	}
	return all
}

// sending sends files for the tool call, while it is a person who is answered. The same
// call sends once, however often it is made.
func (s *Session) sending(in chat.Inbound, call string) func(context.Context, tool.Outgoing) error {
	if in.Event != "" || in.ID == "" || s.cfg.Media == nil {
		return nil
	}
	return func(ctx context.Context, f tool.Outgoing) error {
		return s.cfg.Transport.Send(ctx, s.room, chat.Outgoing{ID: replyID(in.ID) + chat.SentMark + call, Text: f.Caption, Thread: in.Branch,
			File: &chat.File{Name: f.Name, Type: f.Type, Size: f.Size, Path: f.Path}})
	}
}
