package session

import (
	"context"
	"slices"
	"strings"

	"reverie/internal/attachment"
	"reverie/internal/chat"
	"reverie/internal/tool"
)

// attachments returns a reader for the files of messages.
func (m *Manager) attachments() attachment.Reader {
	return attachment.Reader{Models: m.cfg.Models, Media: m.cfg.Media, Role: chatRole, Most: m.cfg.FileText, Log: m.cfg.Log}
}

// transcribeVoice adds transcripts to the voice messages of a burst.
func (s *Session) transcribeVoice(ctx context.Context, burst []chat.Message) ([]chat.Message, error) {
	out := slices.Clone(burst)
	for i, in := range burst {
		if !slices.ContainsFunc(in.Files, func(f chat.File) bool { return f.Kind == chat.VoiceFile }) {
			continue
		}
		_, stored, err := s.cfg.History.Find(ctx, s.talk, in.ID)
		if err == nil && !stored { // stored messages have transcripts
			s.cfg.Transport.ShowTyping(ctx, s.room, true)
			out[i], err = s.attachments().TranscribeVoice(ctx, in)
		}
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// unreadableNotice returns the notice for a message with only unreadable files; "" = the model answers.
func (s *Session) unreadableNotice(ctx context.Context, burst []chat.Message) string {
	if len(burst) != 1 || len(burst[0].Files) == 0 || strings.TrimSpace(burst[0].Text) != "" {
		return ""
	}
	var lines []string
	for _, f := range burst[0].Files {
		switch {
		case f.Note == "":
			return ""
		case f.Kind == chat.VoiceFile && f.Note == attachment.ErrNoTranscription:
			lines = append(lines, s.text(ctx, "files.deaf"))
		default:
			lines = append(lines, s.text(ctx, "files.unopened", "name", f.Name, "why", s.cfg.Messages.Reason(ctx, s.room, f.Note)))
		}
	}
	return strings.Join(lines, "\n")
}

// fileSender returns the function that sends a file for the tool call; nil unless a person is
// answered. Repeating a call sends the file once.
func (s *Session) fileSender(in item, call string) func(context.Context, tool.Outgoing) error {
	if in.event.Kind != "" || in.ID == "" || s.cfg.Media == nil {
		return nil
	}
	return func(ctx context.Context, f tool.Outgoing) error {
		return s.cfg.Transport.Send(ctx, s.room, chat.Outgoing{ID: chat.ReplyID(in.ID) + "+file-" + call, AnswerID: chat.ReplyID(in.ID),
			Text: f.Caption, Thread: in.Branch, File: &chat.File{Name: f.Name, Type: f.Type, Size: f.Size, Path: f.Path}})
	}
}
