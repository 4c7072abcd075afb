package llm

import (
	"bytes"
	"encoding/json"
	"image"
	"image/png"
	"io"
	"net/http"
	"net/http/httptest"
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

// sighted is a server that records chat requests and answers what say returns for them.
type sighted struct {
	show, props string // answers of /api/show and /props; "" = 404
	refuse      string // answer to a request with pictures, with status 500; "" = none
	bodies      []string
}

func (s *sighted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	answer := map[string]string{"/api/show": s.show, "/props": s.props}[r.URL.Path]
	switch {
	case r.URL.Path == "/v1/chat/completions":
		s.bodies = append(s.bodies, string(body))
		if s.refuse != "" && strings.Contains(string(body), "image_url") {
			w.WriteHeader(http.StatusInternalServerError)
			io.WriteString(w, s.refuse)
			return
		}
		io.WriteString(w, `{"choices":[{"message":{"role":"assistant","content":"seen"},"finish_reason":"stop"}]}`)
	case r.URL.Path == "/v1/audio/transcriptions":
		s.bodies = append(s.bodies, string(body))
		io.WriteString(w, `{"text":" Hello there. "}`)
	case answer != "":
		io.WriteString(w, answer)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

func TestPictures(t *testing.T) {
	yes, no := true, false
	for _, tt := range []struct {
		name   string
		config *bool
		server sighted
		sees   bool
		asked  int // requests to the model
	}{
		{"configured", &yes, sighted{}, true, 1},
		{"configured that it cannot", &no, sighted{show: `{"model_info":{},"parameters":"","capabilities":["vision"]}`}, false, 1},
		{"nobody says", nil, sighted{}, false, 1},
		{"ollama says so", nil, sighted{show: `{"model_info":{},"parameters":"","capabilities":["completion","vision"]}`}, true, 1},
		{"ollama says it cannot", nil, sighted{show: `{"model_info":{},"parameters":"","capabilities":["completion"]}`}, false, 1},
		{"llama.cpp says so", nil, sighted{props: `{"default_generation_settings":{"n_ctx":8192},"modalities":{"vision":true}}`}, true, 1},
		{"configured, but refused", &yes, sighted{refuse: `{"error":{"code":500,"message":"image input is not supported - hint: provide the mmproj"}}`}, false, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := tt.server
			web := httptest.NewServer(&s)
			defer web.Close()
			m := configured(t, Config{Models: []ModelConfig{{Name: "m", BaseURL: web.URL + "/v1", Model: "x", Window: 8192, Vision: tt.config}}})
			req := Request{Messages: []Message{{Role: User, Content: "look", Pictures: []Picture{{Name: "cat.png", File: pixels(t), Width: 400, Height: 300}}}}}
			if _, err := m.Complete(t.Context(), "chat", req, nil); err != nil {
				t.Fatal(err)
			}
			if len(s.bodies) != tt.asked {
				t.Fatalf("the model was asked %d times, not %d", len(s.bodies), tt.asked)
			}
			body := s.bodies[len(s.bodies)-1]
			if got := strings.Contains(body, `"image_url":{"url":"data:image/png;base64,`); got != tt.sees {
				t.Errorf("pixels were sent: %v; the request is %s", got, body)
			}
			if tt.sees && !strings.Contains(body, "[image cat.png, 400×300]") || !tt.sees && !strings.Contains(body, "[image cat.png, 400×300: this model cannot see images.") {
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
	s := sighted{}
	web := httptest.NewServer(&s)
	defer web.Close()
	model := ModelConfig{Name: "ears", BaseURL: web.URL + "/v1", Model: "whisper-1", Window: 8192}
	m := configured(t, Config{Models: []ModelConfig{model}, Roles: map[string][]string{"transcription": {"ears"}}})
	file := filepath.Join(t.TempDir(), "a.ogg")
	if err := os.WriteFile(file, []byte("OggS…"), 0o600); err != nil {
		t.Fatal(err)
	}
	text, err := m.Transcribe(t.Context(), file, "a.ogg")
	if err != nil || text != "Hello there." {
		t.Errorf("got %q, %v", text, err)
	}
	if len(s.bodies) != 1 || !strings.Contains(s.bodies[0], "OggS…") || !strings.Contains(s.bodies[0], "whisper-1") {
		t.Errorf("sent %q", s.bodies)
	}
	none := configured(t, Config{Models: []ModelConfig{model}})
	if none.Hears() || !m.Hears() { // a chat model does not stand in
		t.Error("who hears and who does not is mixed up")
	}
}
