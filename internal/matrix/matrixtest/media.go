package matrixtest

import (
	"io"
	"mime"
	"net/http"
	"strconv"
)

// maxMedia is the most that may be uploaded.
const maxMedia = 16 << 20

type upload struct {
	kind, name string
	data       []byte
}

func (c *call) mediaConfig() any { return map[string]any{"m.upload.size": maxMedia} }

func (c *call) upload(http.ResponseWriter) any {
	data, err := io.ReadAll(io.LimitReader(c.Body, maxMedia+1))
	if err != nil {
		panic(http.ErrAbortHandler) // the client went away
	}
	if len(data) > maxMedia {
		return fail(http.StatusRequestEntityTooLarge, "M_TOO_LARGE", "the file is too large")
	}
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	id := c.s.id("media")
	kind := c.Header.Get("Content-Type")
	if kind == "" {
		kind = "application/octet-stream"
	}
	c.s.media[id] = upload{kind, c.URL.Query().Get("filename"), data}
	return map[string]string{"content_uri": "mxc://" + c.s.Name + "/" + id}
}

func (c *call) download(w http.ResponseWriter) any {
	c.s.mu.Lock()
	u, ok := c.s.media[c.PathValue("media")]
	c.s.mu.Unlock()
	if !ok || c.PathValue("server") != c.s.Name {
		return missing("file")
	}
	w.Header().Set("Content-Type", u.kind)
	w.Header().Set("Content-Length", strconv.Itoa(len(u.data)))
	if u.name != "" {
		w.Header().Set("Content-Disposition", mime.FormatMediaType("inline", map[string]string{"filename": u.name}))
	}
	_, _ = w.Write(u.data) // who went away need not get it
	return nil
}
