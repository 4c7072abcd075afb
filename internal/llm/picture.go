package llm

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"

	openai "github.com/sashabaranov/go-openai"
)

// Picture is an image in a message. Models with vision get its pixels, others a text that names it.
type Picture struct {
	Name          string // for people and the model
	File          string // path of a JPEG or PNG; read when it is sent
	Width, Height int    // pixels of the original image
}

// maxPicture is the largest picture that is sent, in bytes.
const maxPicture = 8 << 20

// url returns the picture as a data: URL. The error is a text for the model.
func (p Picture) url() (string, error) {
	data, err := os.ReadFile(p.File)
	if err != nil || len(data) > maxPicture {
		return "", fmt.Errorf("[image %s: it is not kept here any more]", p.Name)
	}
	return "data:" + http.DetectContentType(data) + ";base64," + base64.StdEncoding.EncodeToString(data), nil
}

// contentParts returns the content of a message with pictures, for models with vision.
func contentParts(msg Message) []openai.ChatMessagePart {
	text := msg.Content
	var shown []openai.ChatMessagePart
	for _, p := range msg.Pictures {
		url, err := p.url()
		if err != nil {
			text += "\n" + err.Error()
			continue
		}
		text += fmt.Sprintf("\n[image %s, %d×%d]", p.Name, p.Width, p.Height)
		shown = append(shown, openai.ChatMessagePart{Type: openai.ChatMessagePartTypeImageURL,
			ImageURL: &openai.ChatMessageImageURL{URL: url}})
	}
	return append([]openai.ChatMessagePart{{Type: openai.ChatMessagePartTypeText, Text: strings.TrimPrefix(text, "\n")}}, shown...)
}

// describePictures replaces pictures by texts.
func describePictures(messages []Message) []Message {
	out := make([]Message, 0, len(messages))
	for _, m := range messages {
		for _, p := range m.Pictures {
			m.Content = strings.TrimPrefix(fmt.Sprintf("%s\n[image %s, %d×%d: this model cannot see images. "+
				"Tell the person so, and do not guess what it shows]", m.Content, p.Name, p.Width, p.Height), "\n")
		}
		m.Pictures = nil
		out = append(out, m)
	}
	return out
}

// hasPictures reports whether a request has pictures.
func hasPictures(req Request) bool {
	return slices.ContainsFunc(req.Messages, func(m Message) bool { return len(m.Pictures) > 0 })
}

// AcceptsPictures reports whether the role's first model accepts pictures: by the configuration, or by what
// its server says, which may take a request. Unknown means false.
func (m *Models) AcceptsPictures(ctx context.Context, role string) bool {
	list := m.failoverList(role)
	return len(list) > 0 && list[0].acceptsPictures(ctx)
}

func (m *model) acceptsPictures(ctx context.Context) bool {
	if m.knownQuirks()&noPictures != 0 {
		return false
	}
	if m.Vision != nil {
		return *m.Vision
	}
	if m.unanswered() {
		m.detect(ctx)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	sees := m.windows.found.Vision
	return sees != nil && *sees
}
