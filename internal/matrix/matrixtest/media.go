package matrixtest

import (
	"io"
	"mime"
	"net/http"
	"net/http/httptest"
	"strconv"
	"time"
)

// maxMedia limits an upload, in bytes.
const maxMedia = 16 << 20

type upload struct {
	kind, name string
	data       []byte
}

func (c *call) mediaConfig() any { return map[string]any{"m.upload.size": maxMedia} }

func (c *call) upload(http.ResponseWriter) any {
	data, err := io.ReadAll(io.LimitReader(c.Body, maxMedia+1))
	if err != nil {
		panic(http.ErrAbortHandler) // the client disconnected
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
		return notFound("file")
	}
	w.Header().Set("Content-Type", u.kind)
	w.Header().Set("Content-Length", strconv.Itoa(len(u.data)))
	if u.name != "" {
		w.Header().Set("Content-Disposition", mime.FormatMediaType("inline", map[string]string{"filename": u.name}))
	}
	_, _ = w.Write(u.data) // the client may have disconnected
	return nil
}

// Uploads returns all uploaded files, in no order.
func (s *Server) Uploads() [][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all [][]byte
	for _, u := range s.media {
		all = append(all, u.data)
	}
	return all
}

// record returns the response that a request would have had.
func record(r *http.Request, next http.Handler) *httptest.ResponseRecorder {
	a := httptest.NewRecorder()
	next.ServeHTTP(a, r)
	return a
}

// WithoutLength sends a response without its length, as proxies do.
func WithoutLength() Fault {
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		a := record(r, next)
		w.WriteHeader(a.Code)
		_ = http.NewResponseController(w).Flush() // now no length can be sent
		_, _ = w.Write(a.Body.Bytes())
	}
}

// FlipBit flips a bit of the response.
func FlipBit() Fault {
	return ChangeAnswer(func(a *httptest.ResponseRecorder, _ *http.Request) {
		if b := a.Body.Bytes(); len(b) > 0 {
			b[len(b)/2] ^= 1
		}
	})
}

// Drip sends a response byte by byte, with a pause before each.
func Drip(pause time.Duration) Fault {
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		a := record(r, next)
		w.Header().Set("Content-Length", strconv.Itoa(a.Body.Len()))
		w.WriteHeader(a.Code)
		for _, b := range a.Body.Bytes() {
			select {
			case <-r.Context().Done():
				return
			case <-time.After(pause):
			}
			if _, err := w.Write([]byte{b}); err != nil {
				return
			}
			_ = http.NewResponseController(w).Flush() // best effort
		}
	}
}
