// Package attachment converts what came with messages to what a model reads: pictures, texts,
// transcripts and quotes.
package attachment

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"log/slog"
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
)

// Reader reads files for models.
type Reader struct {
	Models *llm.Models
	Media  *media.Store // nil = files cannot be read
	Role   string       // of the models that read the text; their window limits its size
	Most   int          // characters of a file that the model gets; 0 = 40,000
	Log    *slog.Logger
}

const (
	defaultFileText = 40_000 // characters of a file that the model gets
	minFileText     = 400    // a smaller part of a file is useless
	fileShare       = 4      // one file takes at most a quarter of the window, all files of a message a half
	fileTime        = time.Minute
)

const voiceMark = "[voice message, transcribed]"

// KeepTranscripts replaces the words of a message and keeps the transcripts that was contains.
func KeepTranscripts(was, now string) string {
	_, spoken, ok := strings.Cut("\n"+was, "\n"+voiceMark+" ")
	if !ok || strings.Contains(now, voiceMark) {
		return now
	}
	return strings.TrimSpace(now + "\n" + voiceMark + " " + spoken)
}

// Files returns what the model gets of the files of in.
func (r Reader) Files(ctx context.Context, in chat.Message) []history.File {
	var all []history.File
	for _, f := range in.Files {
		if f.Kind == chat.VoiceFile && f.Note == "" {
			continue // its words are the message's
		}
		all = append(all, r.readFile(ctx, f, len(in.Files)))
	}
	return all
}

// readFile returns what the model gets of f, one of came files.
func (r Reader) readFile(ctx context.Context, f chat.File, came int) history.File {
	h := history.File{Name: f.Name, Type: f.Type, Size: f.Size, Path: f.Path, Note: f.Note}
	if h.Note != "" || r.Media == nil || f.Path == "" {
		h.Note = cmp.Or(h.Note, i18n.New("why.file_unread"))
		return h
	}
	ctx, cancel := context.WithTimeout(ctx, fileTime)
	defer cancel()
	var err error
	switch {
	case strings.HasPrefix(f.Type, "image/"):
		var p media.Picture
		if p, err = r.Media.Picture(f.Path); err == nil {
			h.Picture, h.Width, h.Height, h.W, h.H = p.Path, p.Width, p.Height, p.W, p.H
			return h
		}
	case f.Kind == chat.AudioFile && isAudio(f.Type):
		var text string
		if text, err = r.transcript(ctx, f); err == nil {
			h.Text = "(what is said in it)\n" + r.clipToWindow(text, came)
			return h
		}
		if why := i18n.FromError(err); why.Translatable() {
			err = i18n.New("why.not_transcribed", "why", why)
		}
	default:
		var text string
		if text, err = r.Media.Text(ctx, f.Path, f.Type); err == nil {
			r.setExcerpt(&h, text, came)
			return h
		}
	}
	r.Log.Info("a file cannot be read", "type", f.Type, "size", f.Size, "err", err)
	h.Note = r.fileReason(ctx, err, f)
	return h
}

// isAudio reports whether a type may be a recording.
func isAudio(kind string) bool {
	return strings.HasPrefix(kind, "audio/") ||
		slices.Contains([]string{"application/ogg", "video/mp4", "video/webm", "application/octet-stream"}, kind)
}

// fileReason explains for people why a file could not be read.
func (r Reader) fileReason(ctx context.Context, err error, f chat.File) i18n.Text {
	var at *fs.PathError
	switch {
	case ctx.Err() != nil:
		return i18n.New("why.file_long")
	case errors.As(err, &at), errors.Is(err, fs.ErrNotExist):
		return i18n.New("why.file_lost")
	}
	return i18n.New("why.file_of_kind", "why", i18n.FromError(err), "type", f.Type, "size", media.FormatSize(f.Size))
}

// setExcerpt stores the beginning and end of a text in h, see clipToWindow.
func (r Reader) setExcerpt(h *history.File, text string, came int) {
	h.Text = r.clipToWindow(text, came)
	if len(h.Text) < len(text) {
		h.More = media.TextPath(h.Path)
	}
	if strings.TrimSpace(h.Text) == "" {
		h.Text, h.Note = "", i18n.New("why.file_empty")
	}
}

// clipToWindow returns the beginning and end of a file's text. The files of one message share a part of the
// window.
func (r Reader) clipToWindow(text string, came int) string {
	window, out := r.Models.Window(r.Role)
	tokens, most := max((window-out)/max(fileShare, came), 100), cmp.Or(r.Most, defaultFileText)
	short := media.ClipMiddle(text, most)
	for llm.EstimateTokens(short) > tokens && most > minFileText {
		most = min(most, utf8.RuneCountInString(text)) * 3 / 4
		short = media.ClipMiddle(text, most)
	}
	return short
}

// ErrNoTranscription says that no model can transcribe a recording.
var ErrNoTranscription = i18n.New("why.no_transcription")

func (r Reader) transcript(ctx context.Context, f chat.File) (string, error) {
	if !r.Models.Has("transcription") || r.Media == nil {
		return "", ErrNoTranscription
	}
	name := path.Base(f.Path)
	if stem, ok := strings.CutSuffix(name, ".bin"); ok { // servers tell the format by the extension
		name = stem + ".ogg"
	}
	text, err := r.Models.Transcribe(ctx, r.Media.File(f.Path), name)
	var model *llm.Error
	if errors.As(err, &model) {
		r.Log.Error("not transcribed", "err", err)
		return "", model.Kind.Why()
	}
	return text, err
}

// TranscribeVoice returns in with the transcripts of its voice messages. Failures are stated in their notes.
func (r Reader) TranscribeVoice(ctx context.Context, in chat.Message) (chat.Message, error) {
	in.Files = append([]chat.File(nil), in.Files...)
	for i, f := range in.Files {
		if f.Kind != chat.VoiceFile || f.Note != "" {
			continue
		}
		text, err := r.transcript(ctx, f)
		switch {
		case ctx.Err() != nil:
			return in, ctx.Err()
		case err != nil:
			in.Files[i].Note = i18n.FromError(err)
		default:
			in.Text = strings.TrimSpace(in.Text + "\n" + voiceMark + " " + text)
		}
	}
	return in, nil
}

// HasPictures reports whether a conversation has pictures.
func HasPictures(past []history.Message) bool {
	return slices.ContainsFunc(past, func(m history.Message) bool {
		return slices.ContainsFunc(m.Files, func(f history.File) bool { return f.Picture != "" })
	})
}

// Received maps the readable paths of received files and their texts to names.
func Received(past []history.Message) map[string]string {
	all := map[string]string{}
	for i := range past {
		for j := range past[i].Files {
			if f := &past[i].Files[j]; f.Path != "" {
				all[f.Path], all[media.TextPath(f.Path)] = f.Name, f.Name
			}
		}
	}
	return all
}
