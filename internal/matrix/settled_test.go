package matrix

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
)

// The state of an Olm session could not be stored before the end: what was encrypted with
// it does not leave, all else does.
func TestOlmMessageStays(t *testing.T) {
	k, s := newKeyStore(t)
	var sent []string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { sent = append(sent, r.URL.Path) }))
	defer server.Close()
	client := &http.Client{Transport: transport{k.c, http.DefaultTransport}}
	defer client.CloseIdleConnections()
	put := func(kind string) error {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, server.URL+"/_matrix/client/v3/sendToDevice/"+kind+"/txn", nil)
		must(t, err)
		resp, err := client.Do(req)
		if err == nil {
			must(t, resp.Body.Close())
		}
		return err
	}
	must(t, put("m.room.encrypted"))
	close(k.c.ending)
	step(t, s)
	must(t, k.UpdateSession(t.Context(), "sender", s))
	must(t, put("m.room.encrypted")) // it is stored: nothing is wrong
	must(t, k.c.cfg.DB.Close())
	step(t, s)
	if err := k.UpdateSession(t.Context(), "sender", s); err == nil {
		t.Error("stored in a closed database")
	}
	if err := put("m.room.encrypted"); !errors.Is(err, errBehind) {
		t.Errorf("error %v", err)
	}
	must(t, put("m.room_key_request"))
	if len(sent) != 3 {
		t.Errorf("sent: %q", sent)
	}
}
