package matrixtest

import (
	"io"
	"mime"
	"net/http"
	"net/http/httptest"
	"strconv"
	"time"
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

// Uploads is all that was uploaded, in no order.
func (s *Server) Uploads() [][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all [][]byte
	for _, u := range s.media {
		all = append(all, u.data)
	}
	return all
}

// answered is the answer that a request would have had.
func answered(r *http.Request, next http.Handler) *httptest.ResponseRecorder {
	a := httptest.NewRecorder()
	next.ServeHTTP(a, r)
	return a
}

// Unsized sends an answer without saying how long it is, as proxies do.
func Unsized() Fault {
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		a := answered(r, next)
		w.WriteHeader(a.Code)
		_ = http.NewResponseController(w).Flush() // from here on its length cannot be said
		_, _ = w.Write(a.Body.Bytes())
	}
}

// Flipped changes a bit of the answer.
func Flipped() Fault {
	return Changed(func(a *httptest.ResponseRecorder, _ *http.Request) {
		if b := a.Body.Bytes(); len(b) > 0 {
			b[len(b)/2] ^= 1
		}
	})
}

// Drip sends an answer a byte at a time, with a pause before each.
func Drip(pause time.Duration) Fault {
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		a := answered(r, next)
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
			_ = http.NewResponseController(w).Flush() // as best it can
		}
	}
}
