package rehearsal

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	_ "image/jpeg" // the format of pictures in requests
	_ "image/png"
	"io"
	"net/http"
	"strings"

	"reverie/internal/lazyregexp"
)

// picture is an image part of a message.
type picture struct {
	kind          string // MIME type
	width, height int
	bytes         int
}

// pictureOf decodes a data: URL. Anything else has no size.
func pictureOf(url string) picture {
	head, data, _ := strings.Cut(strings.TrimPrefix(url, "data:"), ",")
	p := picture{kind: strings.TrimSuffix(head, ";base64")}
	raw, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		return p
	}
	p.bytes = len(raw)
	if cfg, _, err := image.DecodeConfig(bytes.NewReader(raw)); err == nil {
		p.width, p.height = cfg.Width, cfg.Height
	}
	return p
}

// describePictures answers which pictures came with the newest message.
func describePictures(t turn) (reply, bool) {
	if len(t.pictures) == 0 || len(t.results) > 0 {
		return reply{}, false
	}
	var seen []string
	for _, p := range t.pictures {
		seen = append(seen, fmt.Sprintf("%s, %d×%d pixels, %d bytes", p.kind, p.width, p.height, p.bytes))
	}
	text := "I was shown a picture: " + strings.Join(seen, "; ") + ". I only rehearse, and cannot say what is on it."
	if t.said != "" {
		text += fmt.Sprintf(" You wrote “%s”.", clip(t.said, 200))
	}
	return reply{text: text}, true
}

var fileRE = lazyregexp.New(`(?s)<data id="[^"]*" source="file">\nfile ([^\n]*)\n(.*?)\n</data `)

// describeFiles answers which files came with the newest message.
func describeFiles(t turn) (reply, bool) {
	m := fileRE().FindStringSubmatch(t.whole)
	if m == nil || len(t.results) > 0 {
		return reply{}, false
	}
	return reply{text: fmt.Sprintf("The file %s begins:\n\n%s", m[1], beginning(m[2]))}, true
}

var noteRE = lazyregexp.New(`(?m)^\[(image|file) ([^\]]*)\]$`)

// describeMissing answers which files did not come, and why.
func describeMissing(t turn) (reply, bool) {
	m := noteRE().FindStringSubmatch(t.whole)
	if m == nil || len(t.results) > 0 {
		return reply{}, false
	}
	return reply{text: "I did not get the " + m[1] + " " + m[2] + "."}, true
}

var sendRE = lazyregexp.New(`(?i)^` + lead + `send(?: me)?(?: the)? file\s+[\x60"']?([^\s\x60"'?]+?)[\x60"']?[.?!]?$`)

// sendFile calls send_file.
func sendFile(t turn, m []string) (reply, bool) {
	return t.callTool("send_file", map[string]any{"path": m[1], "caption": "Here it is."}, "on its way", func(string) string {
		return "I have sent `" + m[1] + "`."
	})
}

var writeRE = lazyregexp.New(`(?is)^` + lead + `write file\s+(\S+?):\s+(.+)$`)

// writeFile calls write_file.
func writeFile(t turn, m []string) (reply, bool) {
	return t.callTool("write_file", map[string]any{"path": m[1], "content": m[2] + "\n"}, "is written", func(string) string {
		return "I have written `" + m[1] + "`."
	})
}

var editRE = lazyregexp.New(`(?is)^` + lead + `in\s+(\S+)\s+replace\s+(.+?)\s+with\s+(.+)$`)

// editFile calls edit_file.
func editFile(t turn, m []string) (reply, bool) {
	return t.callTool("edit_file", map[string]any{"path": m[1], "old": m[2], "new": m[3]}, "is changed", func(result string) string {
		return "```diff\n" + result + "\n```"
	})
}

var modeRE = lazyregexp.New(`(?i)^` + lead + `switch to ([a-z]+) mode[.?!]?$`)

// setMode calls set_mode.
func setMode(t turn, m []string) (reply, bool) {
	return t.callTool("set_mode", map[string]any{"mode": strings.ToLower(m[1])}, "was told", func(string) string { return "As you like." })
}

var (
	questionRE = lazyregexp.New(`(?i)^ask me: (.+) or (.+)\?$`)
	chosenRE   = lazyregexp.New(`^> Answer to the question “(.*)”: (.+)$`)
)

// askPerson calls ask_person.
func askPerson(t turn, m []string) (reply, bool) {
	return t.callTool("ask_person", map[string]any{"question": "Which is it?", "answers": m[1:]}, "is asked", func(string) string { return "" })
}

// chosen answers a vote.
func chosen(_ turn, m []string) (reply, bool) {
	return reply{text: "You have chosen: " + m[2] + "."}, true
}

// transcribe answers any recording with a sentence about its size.
func (s server) transcribe(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxRequest)
	f, head, err := r.FormFile("file")
	if err != nil {
		fail(w, http.StatusBadRequest, "missing_file", "There is no file to be transcribed.")
		return
	}
	defer f.Close()
	if r.FormValue("model") != ModelName {
		fail(w, http.StatusNotFound, "model_not_found", fmt.Sprintf("This server has %q.", ModelName))
		return
	}
	n, err := io.Copy(io.Discard, f)
	if err != nil {
		return // the client disconnected
	}
	send(w, http.StatusOK, map[string]any{"text": fmt.Sprintf("this is a rehearsed transcript of %d bytes", n), "file": head.Filename})
}

// parts decodes a list of content parts.
func parts(b []byte) (text string, pictures []picture, err error) {
	var list []struct {
		Text  string `json:"text"`
		Image struct {
			URL string `json:"url"`
		} `json:"image_url"`
	}
	if err := json.Unmarshal(b, &list); err != nil {
		return "", nil, err
	}
	for _, p := range list {
		text += p.Text
		if p.Image.URL != "" {
			pictures = append(pictures, pictureOf(p.Image.URL))
		}
	}
	return text, pictures, nil
}
