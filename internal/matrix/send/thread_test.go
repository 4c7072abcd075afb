package send

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"maunium.net/go/mautrix"

	"reverie/internal/test/expect"
)

// TestThreadRelation: a homeserver that knows no threads gets Element's name for them, which is all that
// Element shows there.
func TestThreadRelation(t *testing.T) {
	for answer, want := range map[string]string{
		`{"versions": ["v1.1", "v1.2"]}`: "io.element.thread",
		`{"versions": ["v1.2"], "unstable_features": {"org.matrix.msc3440.stable": true}}`:    "m.thread",
		`{"versions": ["v1.2", "v1.11"]}`:                                                     "m.thread",
		`{"versions": ["r0.6.1"], "unstable_features": {"org.matrix.msc3440.stable": false}}`: "io.element.thread",
		`nothing that can be read`:                                                            "m.thread",
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, answer) }))
		client := expect.Must(mautrix.NewClient(server.URL, "", ""))(t)
		expect.Equal(t, string(ThreadRelation(t.Context(), client)), want, answer)
		server.Close()
	}
}
