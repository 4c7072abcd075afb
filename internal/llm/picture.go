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

// Picture is an image of a message. A model that can see is sent its pixels; another
// one is told that there is one.
type Picture struct {
	Name          string // for people and the model
	File          string // JPEG or PNG, on this machine; it is read when it is sent
	Width, Height int    // pixels, of the image that it was made of
}

// maxPicture is how many bytes of a picture are sent.
const maxPicture = 8 << 20

// blind is what a model that cannot see is told of a picture.
func (p Picture) blind() string {
	return fmt.Sprintf("[image %s, %d×%d: this model cannot see images. Tell the person so, and do not guess what it shows]",
		p.Name, p.Width, p.Height)
}

// url is the picture as a data: URL, or the reason why there is none.
func (p Picture) url() (string, error) {
	data, err := os.ReadFile(p.File)
	if err != nil || len(data) > maxPicture {
		return "", fmt.Errorf("[image %s: it is not kept here any more]", p.Name)
	}
	return "data:" + http.DetectContentType(data) + ";base64," + base64.StdEncoding.EncodeToString(data), nil
}

// parts is the content of a message with pictures, for a model that can see.
func parts(msg Message) []openai.ChatMessagePart {
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

// told puts what there would be to see into words.
func told(messages []Message) []Message {
	out := make([]Message, 0, len(messages))
	for _, m := range messages {
		for _, p := range m.Pictures {
			m.Content = strings.TrimPrefix(m.Content+"\n"+p.blind(), "\n")
		}
		m.Pictures = nil
		out = append(out, m)
	}
	return out
}

// pictured reports whether a request has pictures.
func pictured(req Request) bool {
	return slices.ContainsFunc(req.Messages, func(m Message) bool { return len(m.Pictures) > 0 })
}

// Sees reports whether the first model of role can be shown pictures: by the
// configuration, or by what its server says, which it may have to be asked. Where
// nobody says so it cannot.
func (m *Models) Sees(ctx context.Context, role string) bool {
	list := m.list(role)
	return len(list) > 0 && list[0].sees(ctx)
}

func (m *model) sees(ctx context.Context) bool {
	if m.known()&noPictures != 0 {
		return false
	}
	if m.Vision != nil {
		return *m.Vision
	}
	if m.unheard() {
		m.detect(ctx)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	sees := m.windows.found.Sees
	return sees != nil && *sees
}
