package llm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime/multipart"
	"net/http"
	"os"

	"reverie/internal/text"
)

// transcriptionRole is the role of speech-to-text models. It has no fallback to other roles: chat
// models cannot do it.
const transcriptionRole = "transcription"

// CanTranscribe reports whether a speech-to-text model is configured.
func (m *Models) CanTranscribe() bool { return len(m.roles[transcriptionRole]) > 0 }

// Transcribe converts the speech in an audio file to text. The extension of name tells the server its
// format. Models are asked in failover order. An error is an *Error.
func (m *Models) Transcribe(ctx context.Context, file, name string) (string, error) {
	var first *Error
	for _, mod := range m.roles[transcriptionRole] {
		text, err := mod.transcribe(ctx, file, name)
		if err == nil {
			return text, nil
		}
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		m.cfg.Log.Warn("model failed", "model", mod.Name, "role", transcriptionRole, "error", err.Err)
		if first == nil {
			first = err
		}
	}
	if first == nil {
		return "", &Error{Kind: NotFound,
			Err: errors.New("no model is configured for transcription: add one under llm.roles.transcription")}
	}
	return "", first
}

func (m *model) transcribe(ctx context.Context, file, name string) (string, *Error) {
	ctx, cancel := context.WithTimeoutCause(ctx, m.Timeout, errTimeout)
	defer cancel()
	recording, err := os.ReadFile(file)
	if err != nil {
		return "", &Error{Kind: Failed, Model: m.Name, Err: errors.New("the recording was deleted")}
	}
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	part, err := w.CreateFormFile("file", name)
	if err == nil {
		_, err = part.Write(recording)
	}
	if err := errors.Join(err, w.WriteField("model", m.Model), w.Close()); err != nil {
		return "", &Error{Kind: Failed, Model: m.Name, Err: err}
	}
	var heard struct {
		Text string `json:"text"`
	}
	in, err := m.send(ctx, http.MethodPost, m.BaseURL+"/audio/transcriptions", w.FormDataContentType(), form.Bytes())
	if err == nil {
		err = json.NewDecoder(io.LimitReader(in, maxAnswer)).Decode(&heard)
		_ = in.Close() // it was read
	}
	said := text.Clean(heard.Text)
	switch {
	case err != nil:
		failed := m.judge(ctx, err)
		return "", &Error{Kind: failed.kind, Model: m.Name, Err: errors.New(failed.text)}
	case said == "":
		return "", &Error{Kind: Empty, Model: m.Name, Err: errors.New("nothing was heard")}
	}
	return said, nil
}
