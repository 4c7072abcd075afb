package session

import (
	"context"
	"slices"
	"strings"

	"reverie/internal/attachment"
	"reverie/internal/chat"
	"reverie/internal/history"
	"reverie/internal/media"
	"reverie/internal/tool"
)

// pictured reports whether a conversation has pictures.
func pictured(past []history.Message) bool {
	return slices.ContainsFunc(past, func(m history.Message) bool {
		return slices.ContainsFunc(m.Files, func(f history.File) bool { return f.Picture != "" })
	})
}

// attachments reads the files of messages.
func (m *Manager) attachments() attachment.Reader {
	return attachment.Reader{Models: m.cfg.Models, Media: m.cfg.Media, Role: chatRole, Most: m.cfg.FileText, Log: m.cfg.Log}
}

// listen writes down what is said in the voice messages of a burst.
func (s *Session) listen(ctx context.Context, burst []chat.Message) ([]chat.Message, error) {
	out := slices.Clone(burst)
	for i, in := range burst {
		if !slices.ContainsFunc(in.Files, func(f chat.File) bool { return f.Kind == chat.VoiceFile }) {
			continue
		}
		_, heard, err := s.cfg.History.Find(ctx, s.talk, in.ID)
		if err == nil && !heard { // else before an interruption
			s.cfg.Transport.Typing(ctx, s.room, true)
			out[i], err = s.attachments().Listen(ctx, in)
		}
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// unopened is what a person is told whose message was nothing but files that could not
// be had, or heard; "" = the model answers.
func (s *Session) unopened(ctx context.Context, burst []chat.Message) string {
	if len(burst) != 1 || len(burst[0].Files) == 0 || strings.TrimSpace(burst[0].Text) != "" {
		return ""
	}
	var lines []string
	for _, f := range burst[0].Files {
		switch {
		case f.Note == "":
			return ""
		case f.Kind == chat.VoiceFile && f.Note == attachment.ErrDeaf:
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
func (s *Session) sending(in item, call string) func(context.Context, tool.Outgoing) error {
	if in.event.Kind != "" || in.ID == "" || s.cfg.Media == nil {
		return nil
	}
	return func(ctx context.Context, f tool.Outgoing) error {
		return s.cfg.Transport.Send(ctx, s.room, chat.Outgoing{ID: replyID(in.ID) + "+file-" + call, AnswerID: replyID(in.ID),
			Text: f.Caption, Thread: in.Branch, File: &chat.File{Name: f.Name, Type: f.Type, Size: f.Size, Path: f.Path}})
	}
}
