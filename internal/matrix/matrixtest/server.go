package matrixtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"
)

// Server is a homeserver in memory. Its methods are safe for concurrent use.
type Server struct {
	URL  string // base URL; the same after Restart
	Name string // server name: the part after the colon in IDs

	// AlwaysAsk makes the server require the password for the first upload of cross-signing keys, as
	// some servers do. Set it before the first request.
	AlwaysAsk bool

	mux     *http.ServeMux
	http    *http.Server
	served  chan struct{}
	address string

	mu      sync.Mutex
	pos     int64 // of the newest event or change
	serial  int   // for IDs
	users   map[string]*user
	tokens  map[string]*device
	rooms   map[string]*room
	txns    map[txn]json.RawMessage
	media   map[string]upload
	offset  time.Duration
	faults  []*Hook
	counts  map[string]int
	sends   []Send
	changed chan struct{} // closed and replaced after each change
	peersAt int64         // position of the newest membership or change of a user's keys
}

// user is an account.
type user struct {
	id, password, name string
	deactivated        bool
	devices            map[string]*device
	rooms              map[string]*room // in which the user is or was, or is invited to
	data               map[string]datum // account data
	filters            []json.RawMessage
	keys               map[string]json.RawMessage // cross-signing keys: master, self_signing, user_signing
	keysAt             int64                      // position of the last change of a device or identity key
	wake               chan struct{}              // closed and replaced when a sync has news
	backups            []*backup
}

type datum struct {
	pos     int64
	content json.RawMessage
}

// device is a login.
type device struct {
	user     *user
	id, name string
	token    string
	keys     json.RawMessage
	oneTime  []oneTimeKey
	fallback map[string]*oneTimeKey // by algorithm
	inbox    []toDevice
	lastSeen int64
}

type toDevice struct {
	pos int64
	raw json.RawMessage
}

// txn is the scope of a transaction ID.
type txn struct{ token, path string }

// Send is a request to send an event, in the log of Sends.
type Send struct {
	At           time.Time // by the server's clock
	User, Device string
	Room, Type   string
	Txn, EventID string
	Repeat       bool // the transaction ID was known: no new event was made
	Content      json.RawMessage
}

// New returns a server that does not listen yet: use Start, Listen or ServeHTTP.
func New() *Server {
	s := &Server{
		Name:  "matrix.test",
		users: map[string]*user{}, tokens: map[string]*device{}, rooms: map[string]*room{},
		txns: map[txn]json.RawMessage{}, media: map[string]upload{}, counts: map[string]int{},
		changed: make(chan struct{}),
	}
	s.mux = s.routes()
	return s
}

// Start starts a server that listens on loopback until the test ends.
func Start(t testing.TB) *Server {
	t.Helper()
	s := New()
	if err := s.Listen(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return s
}

// Listen listens on loopback: at a free port the first time, and at the same port after Stop.
func (s *Server) Listen() error {
	address := s.address
	if address == "" {
		address = "127.0.0.1:0"
	}
	var l net.Listener
	var err error
	for range 50 { // a closing connection may still use the port
		if l, err = net.Listen("tcp", address); err == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if err != nil {
		return fmt.Errorf("matrixtest: listen: %w", err)
	}
	s.address = l.Addr().String()
	s.URL = "http://" + s.address
	s.http = &http.Server{Handler: s, ReadHeaderTimeout: time.Minute}
	s.served = make(chan struct{})
	// go: Stop waits for it.
	go func(h *http.Server, served chan struct{}) {
		defer close(served)
		_ = h.Serve(l) // always ends with ErrServerClosed
	}(s.http, s.served)
	return nil
}

// Stop cuts all connections and refuses new ones. The data stays; transaction IDs and typing notices
// are lost, as in a restart.
func (s *Server) Stop() {
	if s.http == nil {
		return
	}
	s.mu.Lock()
	clear(s.txns)
	for _, r := range s.rooms {
		r.typing = nil
	}
	s.mu.Unlock()
	_ = s.http.Close()
	<-s.served
	s.http = nil
}

// Restart is Stop, a downtime, and Listen.
func (s *Server) Restart(down time.Duration) error {
	s.Stop()
	time.Sleep(down)
	return s.Listen()
}

// Account creates an account, or sets the password of an existing one, and returns its user ID.
func (s *Server) Account(localpart, password string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := "@" + localpart + ":" + s.Name
	if u := s.users[id]; u != nil {
		u.password = password
		return id
	}
	s.users[id] = &user{
		id: id, password: password, name: localpart,
		devices: map[string]*device{}, rooms: map[string]*room{},
		data: map[string]datum{" m.push_rules": {s.next(), mustJSON(noPushRules())}},
		keys: map[string]json.RawMessage{}, wake: make(chan struct{}),
	}
	return id
}

// Register is Account with the signature of homeserver.Server, so that the same test can use both.
func (s *Server) Register(_ context.Context, localpart, password string) (string, error) {
	if len(password) < 8 {
		return "", errors.New("register: passwords have eight characters or more")
	}
	return s.Account(localpart, password), nil
}

// SetClock moves the server's clock: the Date header and the events' times.
func (s *Server) SetClock(offset time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.offset = offset
}

// ForgetTransactions forgets all transaction IDs, like a restart.
func (s *Server) ForgetTransactions() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.txns)
}

// Count returns the number of requests to an endpoint, including those with faults. The names are in
// table; "" counts all.
func (s *Server) Count(endpoint string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts[endpoint]
}

// Sends returns the log of all events that were sent by request, in order.
func (s *Server) Sends() []Send {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Send(nil), s.sends...)
}

// SendsAfter returns the sends after the first n.
func (s *Server) SendsAfter(n int) []Send {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.sends[n:])
}

// Await waits until holds is true. It checks at once and after every request and hook.
func (s *Server) Await(ctx context.Context, holds func() bool) error {
	for {
		s.mu.Lock()
		changed := s.changed
		s.mu.Unlock()
		if holds() {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("matrixtest: what was awaited did not happen: %w", context.Cause(ctx))
		}
	}
}

// notify wakes Await. The lock is held.
func (s *Server) notify() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// next returns a new stream position. The lock is held.
func (s *Server) next() int64 { s.pos++; return s.pos }

// id returns a new ID. The lock is held.
func (s *Server) id(prefix string) string {
	s.serial++
	return fmt.Sprintf("%s%08x", prefix, s.serial)
}

// now returns the server's time in Unix milliseconds. The lock is held.
func (s *Server) now() int64 { return time.Now().Add(s.offset).UnixMilli() }

// wakeSyncs wakes the user's long polls. The lock is held.
func (u *user) wakeSyncs() {
	close(u.wake)
	u.wake = make(chan struct{})
}
