package send

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strings"

	"maunium.net/go/mautrix"
	"maunium.net/go/mautrix/crypto/attachment"
	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"

	"reverie/internal/chat"
	"reverie/internal/delivery"
	"reverie/internal/i18n"
	"reverie/internal/matrix/render"
	"reverie/internal/matrix/retry"
	"reverie/internal/media"
	"reverie/internal/pace"
)

// rowFile is the file of an outgoing message, as its outbox row stores it.
type rowFile struct {
	Name   string `json:"name"`
	Type   string `json:"type"`
	Size   int64  `json:"size"`
	Path   string `json:"path"`           // below the data folder
	Text   bool   `json:"text,omitempty"` // the content is the row's text, see splitLarge
	Width  int    `json:"width,omitempty"`
	Height int    `json:"height,omitempty"`

	URL    string                   `json:"url,omitempty"`    // content URI if uploaded unencrypted
	Sealed *event.EncryptedFileInfo `json:"sealed,omitempty"` // content URI and key if uploaded encrypted
}

// fileRow returns the file of m in the form of its row. Without a file it returns "".
func (s *Sender) fileRow(m chat.Outgoing) (string, error) {
	if m.File == nil {
		return "", nil
	}
	f := rowFile{Name: media.Name(m.File.Name), Type: m.File.Type, Size: m.File.Size, Path: m.File.Path}
	if strings.HasPrefix(f.Type, "image/") {
		if p, err := s.Media.Picture(f.Path); err == nil {
			f.Width, f.Height = p.Width, p.Height
		}
	}
	b, err := json.Marshal(f)
	return string(b), err
}

// errFileGone reports that a file was deleted before it was sent.
var errFileGone = retry.Refuse(i18n.New("why.file_not_kept"))

// fileContent uploads the file of a row and returns the message content. An encrypted room gets
// only encrypted files.
func (s *Sender) fileContent(ctx context.Context, r delivery.OutboxRow) (*event.MessageEventContent, error) {
	var f rowFile
	if err := json.Unmarshal([]byte(r.File), &f); err != nil {
		return nil, retry.Refuse(i18n.New("why.file_row"))
	}
	// Before an upload it must be certain whether the room is encrypted.
	encrypted, err := s.Rooms.PrepareSend(ctx, id.RoomID(r.Room))
	if err != nil {
		return nil, err
	}
	if f.Sealed == nil && (encrypted || f.URL == "") {
		if err := s.upload(ctx, r, &f, encrypted); err != nil {
			return nil, err
		}
	}
	m := &event.MessageEventContent{MsgType: event.MsgFile, Body: f.Name, FileName: f.Name, Mentions: &event.Mentions{},
		Info: &event.FileInfo{MimeType: f.Type, Size: int(f.Size), Width: f.Width, Height: f.Height}}
	switch {
	case f.Width > 0:
		m.MsgType = event.MsgImage
	case strings.HasPrefix(f.Type, "audio/"):
		m.MsgType = event.MsgAudio
	}
	if f.Sealed != nil {
		m.File = f.Sealed
	} else {
		m.URL = id.ContentURIString(f.URL)
	}
	if r.Text != "" && !f.Text {
		m.Body = r.Text
		if html := render.HTML(r.Text); html != "" {
			m.Format, m.FormattedBody = event.FormatHTML, html
		}
	}
	return m, nil
}

// upload uploads the file of a row once. It stores the file's URI in the row before the URI is
// used. After a crash in between, the file is uploaded again.
func (s *Sender) upload(ctx context.Context, r delivery.OutboxRow, f *rowFile, encrypted bool) error {
	data, err := s.fileData(r, f)
	if err != nil {
		return err
	}
	kind, name := f.Type, f.Name
	var sealed *event.EncryptedFileInfo
	if encrypted { // the homeserver must not learn the type and name
		sealed = &event.EncryptedFileInfo{EncryptedFile: *attachment.NewEncryptedFile()}
		sealed.EncryptInPlace(data)
		kind, name = "application/octet-stream", ""
	}
	up, err := s.Client.UploadMedia(ctx, mautrix.ReqUploadMedia{ContentBytes: data, ContentType: kind, FileName: name})
	if err != nil {
		return fmt.Errorf("matrix: upload a file: %w", err)
	}
	if sealed != nil {
		sealed.URL = up.ContentURI.CUString()
		f.Sealed, f.URL = sealed, ""
	} else {
		f.URL = up.ContentURI.String()
	}
	packed, err := json.Marshal(f)
	if err != nil {
		return err
	}
	return s.Outbox.SetFile(ctx, r.ID, string(packed))
}

// fileData returns the content of a row's file.
func (s *Sender) fileData(r delivery.OutboxRow, f *rowFile) ([]byte, error) {
	if f.Text {
		return []byte(r.Text), nil
	}
	in, err := s.Media.Open(f.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errFileGone
	}
	if err != nil {
		return nil, fmt.Errorf("matrix: send a file: %w", err)
	}
	defer in.Close()
	data, err := io.ReadAll(io.LimitReader(in, s.MaxFile+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("matrix: send a file: %w", err)
	case int64(len(data)) > s.MaxFile:
		return nil, retry.Refuse(i18n.New("why.file_larger", "size", media.FormatSize(s.MaxFile)))
	}
	return data, nil
}

// unsentNotice returns the notice that a file could not be sent.
func (s *Sender) unsentNotice(ctx context.Context, r delivery.OutboxRow, why error) delivery.Notice {
	var f rowFile
	_ = json.Unmarshal([]byte(r.File), &f) // on failure the name is missing
	reason := i18n.New("why.not_taken")
	var refused *retry.RefusedError
	switch {
	case tooLarge(why):
		reason = i18n.New("why.larger_than_taken")
	case errors.As(why, &refused):
		reason = refused.Reason
	}
	say := func(key string, fill ...string) string { return s.Text(ctx, r.Room, key, fill...) }
	text := say("files.unsent", "name", f.Name, "why", reason.In(say))
	return delivery.Notice{ID: r.ID + "-unsent", Room: r.Room, Text: text, ReplyTo: r.ReplyTo, Thread: r.Thread}
}

// maxCaption limits the caption of a file, in characters.
const maxCaption = 2000

// Notify sends a notice to its room, once per notice ID.
func (s *Sender) Notify(ctx context.Context, n delivery.Notice) error {
	if err := s.Outbox.Notify(ctx, s.DB, n); err != nil {
		return err
	}
	pace.Wake(s.OutWake)
	return nil
}

// A text that is too large for one event is sent as its beginning plus a Markdown file with all of
// it. The file is a row next to the row of the beginning and holds the whole text, so both are
// stored in one transaction, without a file on disk. The row is named after the text: a new version
// of the answer gets another file, and the old one is redacted.

// splitLarge returns the text of a message event. If text is too large for one event, file is the
// row form of a file with all of it.
func (s *Sender) splitLarge(ctx context.Context, room, text string) (short, file string, err error) {
	if render.Size(text) <= render.MaxSize {
		return text, "", nil
	}
	name := media.Name(s.Text(ctx, room, "matrix.whole_name"))
	note := "\n\n*" + s.Text(ctx, room, "matrix.whole", "file", name) + "*"
	packed, err := json.Marshal(rowFile{Name: name, Type: "text/markdown", Size: int64(len(text)), Text: true})
	return render.Truncate(text, render.MaxSize, note), string(packed), err
}

// tooLarge reports whether a homeserver or its reverse proxy refused an event for its size.
func tooLarge(err error) bool {
	var h mautrix.HTTPError
	return errors.As(err, &h) && (h.IsStatus(http.StatusRequestEntityTooLarge) || errors.Is(err, mautrix.MTooLarge))
}
