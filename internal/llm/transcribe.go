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

// Transcribe converts the speech in an audio file to text. The extension of name tells the server its
// format. Models of the role transcription are asked in failover order. An error is an *Error, or ctx's.
func (m *Models) Transcribe(ctx context.Context, file, name string) (string, error) {
	return askInTurn(ctx, m, "transcription", func(mod *model) (string, *Error) { return mod.transcribe(ctx, file, name) })
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
		return "", m.failed(m.judge(ctx, err))
	case said == "":
		return "", &Error{Kind: Empty, Model: m.Name, Err: errors.New("nothing was heard")}
	}
	return said, nil
}
