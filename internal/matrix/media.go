package matrix

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"strings"
	"time"

	"maunium.net/go/mautrix"
	"maunium.net/go/mautrix/crypto/attachment"
	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"

	"reverie/internal/chat"
	"reverie/internal/i18n"
	"reverie/internal/matrix/gate"
	"reverie/internal/matrix/retry"
	"reverie/internal/media"
	"reverie/internal/pace"
	"reverie/internal/store"
)

const (
	fetchLimit = time.Minute
	fetchTries = 4
)

// filesOfMessage returns the file of a file message, not fetched yet, or nil.
func filesOfMessage(msg *event.MessageEventContent, encrypted bool, limit int64) []chat.File {
	kind := gate.FileKinds[msg.MsgType]
	if kind == "" {
		return nil
	}
	f := chat.File{Name: media.Name(msg.GetFileName()), Kind: kind}
	if kind == chat.AudioFile && msg.MSC3245Voice != nil {
		f.Kind = chat.VoiceFile
	}
	if msg.Info != nil {
		f.Size = int64(msg.Info.Size) // as the sender claims; replaced by the real size after the download
	}
	switch {
	case kind == chat.VideoFile:
		f.Note = i18n.New("why.no_videos")
	case f.Size > limit:
		f.Note = fileTooLargeNote(limit)
	case msg.File != nil && msg.File.URL != "":
		source, err := json.Marshal(msg.File)
		if f.Source = string(source); err != nil {
			f.Note = i18n.New("why.file_nowhere")
		}
	case encrypted:
		f.Note = i18n.New("why.file_plain")
	case msg.URL != "":
		f.Source = string(msg.URL)
	default:
		f.Note = i18n.New("why.file_nowhere")
	}
	return []chat.File{f}
}

func fileTooLargeNote(limit int64) i18n.Text {
	return i18n.New("why.file_large", "size", media.FormatSize(limit))
}

// fetchOwnAndRepliedFiles fetches the message's own file and that of the message it replies to.
func (f *completer) fetchOwnAndRepliedFiles(ctx context.Context, m *chat.Message) error {
	err := f.addFileOfRepliedMessage(ctx, m)
	for i := range m.Files {
		if file := &m.Files[i]; file.Source != "" {
			file.Note = f.downloadFileWithRetry(ctx, file)
			file.Source = ""
		}
	}
	return err
}

// addFileOfRepliedMessage adds the file of the message that m replies to. It does nothing if that is
// not a file message.
func (f *completer) addFileOfRepliedMessage(ctx context.Context, m *chat.Message) error {
	if m.ReplyTo == "" {
		return nil
	}
	if ours, err := f.outbox.IsOwnEvent(ctx, m.ReplyTo); ours || err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, smallTimeout)
	defer cancel()
	evt, err := f.fetchAndDecryptEvent(ctx, id.RoomID(m.Room), id.EventID(m.ReplyTo))
	if err != nil || evt.Unsigned.RedactedBecause != nil {
		return err
	}
	msg := gate.ContentOf(evt)
	if msg == nil || !gate.IsFile(msg) {
		return nil
	}
	found := filesOfMessage(msg, evt.Mautrix.WasEncrypted, f.cfg.MaxFile)
	if found[0].Kind == chat.VoiceFile { // a voice message of another person is not this person's question
		found[0].Kind = chat.AudioFile
	}
	m.Files = append(found, m.Files...)
	return nil
}

// downloadFileWithRetry downloads and stores a file. If that fails, the note tells the model why.
func (f *completer) downloadFileWithRetry(ctx context.Context, file *chat.File) (note i18n.Text) {
	for try := 0; ; try++ {
		stored, err := f.downloadAndStoreFile(ctx, file.Source)
		if err == nil {
			file.Path, file.Type, file.Size = stored.Path, stored.Type, stored.Size
			return ""
		}
		var large *media.TooLargeError
		var h mautrix.HTTPError
		switch {
		case ctx.Err() != nil:
			return i18n.New("why.file_slow")
		case errors.As(err, &large):
			return fileTooLargeNote(large.Most)
		case errors.Is(err, errSource):
			return i18n.New("why.file_nowhere")
		case errors.Is(err, attachment.ErrHashMismatch), errors.Is(err, errSealed):
			return i18n.New("why.file_forged")
		case errors.Is(err, mautrix.MNotFound), errors.As(err, &h) && h.IsStatus(http.StatusNotFound):
			return i18n.New("why.file_gone")
		}
		v, wait := retry.Classify(err, try)
		f.cfg.Log.Warn("matrix: a file could not be fetched", "try", try+1, "err", err)
		if v != retry.Again || try+1 == fetchTries {
			if disk := (*fs.PathError)(nil); errors.As(err, &disk) {
				return i18n.New("why.file_no_room")
			}
			return i18n.New("why.file_failed")
		}
		if pace.Pause(ctx, nil, min(wait, fetchLimit/10)) != nil {
			return i18n.New("why.file_slow")
		}
	}
}

var (
	errSource = errors.New("the file has no valid URI")
	errSealed = errors.New("the file's key is invalid")
)

// downloadAndStoreFile fetches and stores the file at source, a value made by filesOfMessage. It
// ignores the size and type that the sender or the homeserver claims.
func (f *completer) downloadAndStoreFile(ctx context.Context, source string) (media.Stored, error) {
	var file *event.EncryptedFileInfo
	where := id.ContentURIString(source)
	if strings.HasPrefix(source, "{") {
		if err := json.Unmarshal([]byte(source), &file); err != nil {
			return media.Stored{}, errSource
		}
		where = file.URL
		if file.PrepareForDecryption() != nil {
			return media.Stored{}, errSealed
		}
	}
	uri, err := where.Parse()
	if err != nil || uri.IsEmpty() {
		return media.Stored{}, errSource
	}
	limit := f.cfg.MaxFile
	resp, err := f.cli.Download(ctx, uri)
	if err != nil {
		return media.Stored{}, err
	}
	defer resp.Body.Close()
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return media.Stored{}, mautrix.HTTPError{Response: resp, Request: resp.Request, Message: "no file"}
	}
	if resp.ContentLength > limit {
		return media.Stored{}, &media.TooLargeError{Most: limit}
	}
	stream := bufio.NewReader(resp.Body)
	if isRateLimitResponse(resp, stream) {
		return media.Stored{}, mautrix.HTTPError{Response: resp, Request: resp.Request, Message: "too many downloads"}
	}
	var body io.Reader = stream
	if file != nil {
		body = file.DecryptStream(body)
	}
	stored, err := f.cfg.Media.Save(body, limit)
	return stored, store.Wrap(err, "matrix: fetch a file")
}

// isRateLimitResponse reports whether a response is Dendrite's refusal of too many downloads.
// It has status 200 and no headers of a file.
func isRateLimitResponse(resp *http.Response, body *bufio.Reader) bool {
	const refusal = `{"Code":429,`
	if resp.Header.Get("Content-Disposition") != "" || !strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json") {
		return false
	}
	begin, _ := body.Peek(len(refusal)) // a read error is returned again by the next read
	return string(begin) == refusal
}
