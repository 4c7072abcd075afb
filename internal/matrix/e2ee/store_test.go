package e2ee

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"go.mau.fi/util/dbutil"
	"maunium.net/go/mautrix/crypto"

	"reverie/internal/store"
	"reverie/internal/store/storetest"
	"reverie/internal/test/expect"
)

// unattached returns a Store of a new database, before Attach.
func unattached(t *testing.T, ending <-chan struct{}) *Store {
	t.Helper()
	db := expect.Must(storetest.Open(t, filepath.Join(t.TempDir(), "bot.db")))(t)
	t.Cleanup(func() { db.Close() })
	return NewStore(StoreConfig{DB: db, Log: slog.New(slog.DiscardHandler), Ending: ending, RetryDelay: 2 * time.Second, OnProblem: func(string) {}})
}

// newStore returns a Store with an Olm session that can encrypt.
func newStore(t *testing.T) (*Store, *crypto.OlmSession) {
	t.Helper()
	k := unattached(t, make(chan struct{}))
	db := expect.Must(k.Database())(t)
	k.SQLCryptoStore = crypto.NewSQLCryptoStore(db, dbutil.NoopLogger, "", "DEVICE", []byte("a key"))
	expect.OK(t, k.DB.Upgrade(t.Context()))
	ours, theirs := crypto.NewOlmAccount(), crypto.NewOlmAccount()
	expect.OK(t, k.PutAccount(t.Context(), ours))
	expect.OK(t, theirs.Internal.GenOneTimeKeys(1))
	keys := expect.Must(theirs.Internal.OneTimeKeys())(t)
	for _, key := range keys {
		internal := expect.Must(ours.Internal.NewOutboundSession(theirs.IdentityKey(), key))(t)
		s := &crypto.OlmSession{Internal: internal}
		expect.OK(t, k.AddSession(t.Context(), "sender", s))
		return k, s
	}
	t.Fatal("no one-time key")
	return nil, nil
}

// stored returns the session as the next start will load it.
func (k *Store) stored(t *testing.T) string {
	t.Helper()
	fresh := &crypto.SQLCryptoStore{DB: k.DB, DeviceID: k.DeviceID, PickleKey: k.PickleKey}
	fresh.InitFields()
	s := expect.Must(fresh.GetLatestSession(t.Context(), "sender"))(t)
	return pickle(t, s)
}

// pickle returns the state of a session, which changes with each message.
func pickle(t *testing.T, s *crypto.OlmSession) string {
	t.Helper()
	p := expect.Must(s.Internal.Pickle([]byte("test")))(t)
	return string(p)
}

func step(t *testing.T, s *crypto.OlmSession) string {
	t.Helper()
	_, _, err := s.Encrypt([]byte("hello"))
	expect.OK(t, err)
	return pickle(t, s)
}

// An Olm session has decrypted a message and is not stored yet: a concurrent encryption waits for the write.
func TestOlmSessionConcurrentUse(t *testing.T) {
	k, s := newStore(t)
	o := &olmMessage{}
	ctx := context.WithValue(t.Context(), olmMessageKey{}, o)
	before := k.stored(t)
	step(t, s)
	expect.OK(t, k.PutOlmHash(ctx, [32]byte{1}, time.Now()))
	expect.OK(t, k.UpdateSession(ctx, "sender", s))
	at, err := k.GetOlmHash(t.Context(), [32]byte{1})
	if expect.OK(t, err); !at.IsZero() || k.stored(t) != before {
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
	k.flushDeferred(o)
	expect.OK(t, <-done)
	at, err = k.GetOlmHash(t.Context(), [32]byte{1})
	if expect.OK(t, err); at.IsZero() {
		t.Error("the hash is not stored")
	}
	if k.stored(t) != last {
		t.Error("the older state has overwritten the newer one")
	}
}

// The stored session is the one that decrypted the message, whatever happens to it meanwhile.
func TestOlmSessionAsItWas(t *testing.T) {
	k, s := newStore(t)
	o := &olmMessage{}
	opening := step(t, s)
	expect.OK(t, k.UpdateSession(context.WithValue(t.Context(), olmMessageKey{}, o), "sender", s))
	step(t, s)
	k.flushDeferred(o)
	if k.stored(t) != opening {
		t.Error("a state is stored that somebody was still working on")
	}
}

// The room key of a message could not be stored before the end: nothing of the Olm session is stored by later uses.
func TestOlmSessionWriteLost(t *testing.T) {
	k, s := newStore(t)
	before := k.stored(t)
	o := &olmMessage{}
	ctx := context.WithValue(t.Context(), olmMessageKey{}, o)
	step(t, s)
	expect.OK(t, k.PutOlmHash(ctx, [32]byte{1}, time.Now()))
	expect.OK(t, k.UpdateSession(ctx, "sender", s))
	k.writeLost.Store(true)
	k.flushDeferred(o)
	if err := k.UpdateSession(t.Context(), "sender", s); !errors.Is(err, errNotStored) {
		t.Errorf("error %v", err)
	}
	at, err := k.GetOlmHash(t.Context(), [32]byte{1})
	if expect.OK(t, err); !at.IsZero() || k.stored(t) != before {
		t.Error("stored without the key")
	}
}

// The state of an Olm session could not be stored before the end: its messages are not sent, other requests are.
func TestOlmMessageStays(t *testing.T) {
	k, s := newStore(t)
	var sent []string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { sent = append(sent, r.URL.Path) }))
	defer server.Close()
	put := func(kind string) error {
		req := expect.Must(http.NewRequestWithContext(t.Context(), http.MethodPut, server.URL+"/_matrix/client/v3/sendToDevice/"+kind+"/txn", nil))(t)
		if err := k.CheckRequest(req); err != nil {
			return err
		}
		resp, err := http.DefaultClient.Do(req)
		if err == nil {
			expect.OK(t, resp.Body.Close())
		}
		return err
	}
	expect.OK(t, put("m.room.encrypted"))
	ending := make(chan struct{})
	close(ending)
	k.cfg.Ending = ending
	step(t, s)
	expect.OK(t, k.UpdateSession(t.Context(), "sender", s))
	expect.OK(t, put("m.room.encrypted")) // it is stored: nothing is wrong
	expect.OK(t, k.cfg.DB.Close())
	step(t, s)
	if err := k.UpdateSession(t.Context(), "sender", s); err == nil {
		t.Error("stored in a closed database")
	}
	if err := put("m.room.encrypted"); !errors.Is(err, errNotStored) {
		t.Errorf("error %v", err)
	}
	expect.OK(t, put("m.room_key_request"))
	if len(sent) != 3 {
		t.Errorf("sent: %q", sent)
	}
}

// A failed write of mautrix fails the whole batch, whether or not mautrix returns the error: for a single
// statement and for a transaction.
// Holds F44.
func TestBatchFailsWithItsWrites(t *testing.T) {
	ctx, ending := t.Context(), make(chan struct{})
	close(ending) // nothing is tried twice
	s := unattached(t, ending)
	db := expect.Must(s.Database())(t)
	var path string
	expect.OK(t, s.cfg.DB.QueryRow(`SELECT file FROM pragma_database_list`).Scan(&path))
	other := expect.Must(storetest.Open(t, path))(t) // another program
	defer other.Close()
	expect.Must(s.cfg.DB.Exec(`PRAGMA busy_timeout = 1`))(t)
	holder := expect.Must(other.BeginTx(ctx, nil))(t)
	const write = `UPDATE matrix_room SET exposed = 0`
	for name, f := range map[string]func(context.Context) error{
		"statement": func(ctx context.Context) error { _, err := db.Exec(ctx, write); return err },
		"transaction": func(ctx context.Context) error {
			return db.DoTxn(ctx, &dbutil.TxnOptions{}, func(context.Context) error { return nil })
		},
	} {
		var failed error
		if err := f(WithFailures(ctx, func(err error) { failed = err })); !store.IsTransient(err) || !store.IsTransient(failed) {
			t.Errorf("%s: error %v, of the batch %v", name, err, failed)
		}
		if err := f(ctx); !store.IsTransient(err) { // outside of a sync
			t.Errorf("%s: %v", name, err)
		}
	}
	expect.OK(t, holder.Rollback())
	var failed error
	ctx = WithFailures(ctx, func(err error) { failed = err })
	expect.Must(db.Exec(ctx, write))(t)
	if _, err := db.Exec(ctx, `UPDATE no_table SET x = 0`); err == nil || store.IsTransient(err) || failed != nil {
		t.Errorf("a fault that will not pass: %v, of the batch %v", err, failed)
	}
}
