package matrix

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"go.mau.fi/util/dbutil"
	"maunium.net/go/mautrix/crypto"
)

// newKeyStore returns one that knows an Olm session with which it can encrypt.
func newKeyStore(t *testing.T) (*keyStore, *crypto.OlmSession) {
	t.Helper()
	c := &Client{cfg: Config{DB: newQueue(t).db}, log: slog.New(slog.DiscardHandler), ending: make(chan struct{}), pace: normalPace, now: time.Now}
	db, err := c.newStores()
	must(t, err)
	k := &keyStore{SQLCryptoStore: crypto.NewSQLCryptoStore(db, dbutil.NoopLogger, "", "DEVICE", []byte("a key")), c: c}
	must(t, k.DB.Upgrade(t.Context()))
	ours, theirs := crypto.NewOlmAccount(), crypto.NewOlmAccount()
	must(t, k.PutAccount(t.Context(), ours))
	must(t, theirs.Internal.GenOneTimeKeys(1))
	keys, err := theirs.Internal.OneTimeKeys()
	must(t, err)
	for _, key := range keys {
		internal, err := ours.Internal.NewOutboundSession(theirs.IdentityKey(), key)
		must(t, err)
		s := &crypto.OlmSession{Internal: internal}
		must(t, k.AddSession(t.Context(), "sender", s))
		return k, s
	}
	t.Fatal("no one-time key")
	return nil, nil
}

// stored is the session as the next start will see it.
func (k *keyStore) stored(t *testing.T) string {
	t.Helper()
	fresh := &crypto.SQLCryptoStore{DB: k.DB, DeviceID: k.DeviceID, PickleKey: k.PickleKey}
	fresh.InitFields()
	s, err := fresh.GetLatestSession(t.Context(), "sender")
	must(t, err)
	return pickle(t, s)
}

// pickle is the state of a session, in which each message leaves its trace.
func pickle(t *testing.T, s *crypto.OlmSession) string {
	t.Helper()
	p, err := s.Internal.Pickle([]byte("test"))
	must(t, err)
	return string(p)
}

func step(t *testing.T, s *crypto.OlmSession) string {
	t.Helper()
	_, _, err := s.Encrypt([]byte("hello"))
	must(t, err)
	return pickle(t, s)
}

// Somebody encrypts with an Olm session that has just opened a message, and
// whose state is not stored yet: neither overtakes the other.
func TestOlmSessionInTwoHands(t *testing.T) {
	k, s := newKeyStore(t)
	o := &opened{}
	ctx := context.WithValue(t.Context(), openedKey{}, o)
	before := k.stored(t)
	step(t, s)
	must(t, k.PutOlmHash(ctx, [32]byte{1}, time.Now()))
	must(t, k.UpdateSession(ctx, "sender", s))
	at, err := k.GetOlmHash(t.Context(), [32]byte{1})
	if must(t, err); !at.IsZero() || k.stored(t) != before {
		t.Error("stored before the key")
	}
	last := step(t, s)
	done := make(chan error)
	go func() { done <- k.UpdateSession(t.Context(), "sender", s) }()
	select {
	case err := <-done:
		t.Errorf("stored with what came before it: %v", err)
		go func() { done <- err }()
	case <-time.After(100 * time.Millisecond): // if it comes later it waits as well
	}
	k.settle(o)
	must(t, <-done)
	at, err = k.GetOlmHash(t.Context(), [32]byte{1})
	if must(t, err); at.IsZero() {
		t.Error("the hash is not stored")
	}
	if k.stored(t) != last {
		t.Error("the older state has overwritten the newer one")
	}
}

// What is stored is the session as it was when it opened the message, whatever
// somebody does with it meanwhile.
func TestOlmSessionAsItWas(t *testing.T) {
	k, s := newKeyStore(t)
	o := &opened{}
	opening := step(t, s)
	must(t, k.UpdateSession(context.WithValue(t.Context(), openedKey{}, o), "sender", s))
	step(t, s)
	k.settle(o)
	if k.stored(t) != opening {
		t.Error("a state is stored that somebody was still working on")
	}
}

// The key that came with a message could not be stored before the end: nothing
// of the Olm session is stored, whoever uses it.
func TestOlmSessionBehind(t *testing.T) {
	k, s := newKeyStore(t)
	before := k.stored(t)
	o := &opened{}
	ctx := context.WithValue(t.Context(), openedKey{}, o)
	step(t, s)
	must(t, k.PutOlmHash(ctx, [32]byte{1}, time.Now()))
	must(t, k.UpdateSession(ctx, "sender", s))
	k.c.behind.Store(true)
	k.settle(o)
	if err := k.UpdateSession(t.Context(), "sender", s); !errors.Is(err, errBehind) {
		t.Errorf("error %v", err)
	}
	at, err := k.GetOlmHash(t.Context(), [32]byte{1})
	if must(t, err); !at.IsZero() || k.stored(t) != before {
		t.Error("stored without the key")
	}
}

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
