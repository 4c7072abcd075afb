package llm

import (
	"bytes"
	"encoding/json"
	"image"
	"image/png"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// pixels is a small PNG file.
func pixels(t *testing.T) string {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 4, 3))); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "a.png")
	if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// heard answers with a text, and keeps the requests.
func heard(bodies *[]string, answer func(body string) (status int, text string)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		*bodies = append(*bodies, string(body))
		code, text := answer(string(body))
		status(code, text)(w, r)
	}
}

func TestPictures(t *testing.T) {
	yes, no := true, false
	can := func(all string) http.HandlerFunc {
		return says200(`{"model_info":{},"parameters":"","capabilities":[` + all + `]}`)
	}
	type paths = map[string]http.HandlerFunc
	for _, tt := range []struct {
		name    string
		config  *bool
		paths   paths
		refuses bool
		sees    bool
		asked   int // requests to the model
	}{
		{"configured", &yes, paths{}, false, true, 1},
		{"configured that it cannot", &no, paths{showPath: can(`"vision"`)}, false, false, 1},
		{"nobody says", nil, paths{}, false, false, 1},
		{"ollama says so", nil, paths{showPath: can(`"completion","vision"`)}, false, true, 1},
		{"ollama says it cannot", nil, paths{showPath: can(`"completion"`)}, false, false, 1},
		{"llama.cpp says so", nil, paths{propsPath: says200(`{"default_generation_settings":{"n_ctx":8192},"modalities":{"vision":true}}`)}, false, true, 1},
		{"configured, but refused", &yes, paths{}, true, false, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var bodies []string
			tt.paths[chatPath] = heard(&bodies, func(body string) (int, string) {
				if tt.refuses && strings.Contains(body, "image_url") {
					return 500, `{"error":{"code":500,"message":"image input is not supported - hint: provide the mmproj"}}`
				}
				return 200, `{"choices":[{"message":{"role":"assistant","content":"seen"},"finish_reason":"stop"}]}`
			})
			m := detecting(t, describe(t, tt.paths), ModelConfig{Window: 8192, Vision: tt.config}, nil)
			ask(t, m, Request{Messages: []Message{{Role: User, Content: "look", Pictures: []Picture{{Name: "cat.png", File: pixels(t), Width: 400, Height: 300}}}}})
			if len(bodies) != tt.asked {
				t.Fatalf("the model was asked %d times, not %d", len(bodies), tt.asked)
			}
			body, line := bodies[len(bodies)-1], "[image cat.png, 400×300: this model cannot see images."
			if got := strings.Contains(body, `"image_url":{"url":"data:image/png;base64,`); got != tt.sees {
				t.Errorf("pixels were sent: %v; the request is %s", got, body)
			}
			if tt.sees {
				line = "[image cat.png, 400×300]"
			}
			if !strings.Contains(body, line) {
				t.Errorf("the line about the image is not there: %s", body)
			}
			if got := m.Sees(t.Context(), "chat"); got != tt.sees {
				t.Errorf("Sees says %v", got)
			}
		})
	}
}

// TestPictureGone: a picture that is not there any more is no reason to fail.
func TestPictureGone(t *testing.T) {
	got := parts(Message{Role: User, Pictures: []Picture{{Name: "cat.png", File: filepath.Join(t.TempDir(), "none.jpg")}}})
	if len(got) != 1 || got[0].Text != "[image cat.png: it is not kept here any more]" {
		t.Errorf("got %v", got)
	}
}

// TestPictureWithMark: a cache mark stands on the text, and the picture is sent all the same.
func TestPictureWithMark(t *testing.T) {
	yes := true
	m := newModel(ModelConfig{Name: "m", Model: "x", Window: 8192, Vision: &yes, CacheMarks: true}, withDefaults(Config{}), http.DefaultClient)
	req := Request{Messages: []Message{{Role: User, Content: "look", Pictures: []Picture{{Name: "a", File: pixels(t)}}}}, Marks: []int{0}}
	body, err := marked(m.build(req, 0), m.marks(req, m.messages(req, 0), 0))
	if err != nil {
		t.Fatal(err)
	}
	var sent struct {
		Messages []struct {
			Content []map[string]any `json:"content"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(body, &sent); err != nil {
		t.Fatal(err)
	}
	if c := sent.Messages[0].Content; len(c) != 2 || c[0]["cache_control"] == nil || c[1]["type"] != "image_url" {
		t.Errorf("sent %s", body)
	}
}

func TestTranscribe(t *testing.T) {
	var bodies []string
	d := describe(t, map[string]http.HandlerFunc{"/v1/audio/transcriptions": heard(&bodies, func(string) (int, string) { return 200, `{"text":" Hello there. "}` })})
	m := detecting(t, d, ModelConfig{Model: "whisper-1", Window: 8192}, func(c *Config) { c.Roles = map[string][]string{"transcription": {"a"}} })
	file := filepath.Join(t.TempDir(), "a.ogg")
	if err := os.WriteFile(file, []byte("OggS…"), 0o600); err != nil {
		t.Fatal(err)
	}
	text, err := m.Transcribe(t.Context(), file, "a.ogg")
	if err != nil || text != "Hello there." {
		t.Errorf("got %q, %v", text, err)
	}
	if len(bodies) != 1 || !strings.Contains(bodies[0], "OggS…") || !strings.Contains(bodies[0], "whisper-1") {
		t.Errorf("sent %q", bodies)
	}
	if detecting(t, d, ModelConfig{}, nil).Hears() || !m.Hears() { // a chat model does not stand in
		t.Error("who hears and who does not is mixed up")
	}
}
