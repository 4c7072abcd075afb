package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"regexp"
	"sync"
	"time"
)

// connector opens connections to one database that know of each other. SQLite lets
// one of them write at a time, and those that wait for it sleep and look again, for
// ever longer: on a busy bot most of the time nobody writes and everybody sleeps. So
// ours queue up instead, first come, first served. Another process still meets them
// with SQLite's own waiting.
//
// And each connection keeps the statements that it uses: compiling them takes a fifth of the
// processor's time of a prompt with a search (`make bench`).
type connector struct {
	driver driver.Driver
	name   string
	turn   chan struct{} // holds a token while somebody of ours writes
}

// turnTime is how long a writer queues before it asks SQLite all the same. A
// transaction whose owner waits for somebody who waits for a turn would never end.
const turnTime = 5 * time.Second

// keptStatements is how many statements a connection keeps, and keptLength how long
// they may be in bytes: a text made up for one question does not come again.
const (
	keptStatements = 64
	keptLength     = 4000
)

// newConnector returns a connector for the data source name of the SQLite driver.
func newConnector(name string) (*connector, error) {
	db, err := sql.Open("sqlite", name) // the one that is registered, with what is registered with it
	if err != nil {
		return nil, err
	}
	defer db.Close()
	return &connector{driver: db.Driver(), name: name, turn: make(chan struct{}, 1)}, nil
}

// Connect implements driver.Connector.
func (c *connector) Connect(context.Context) (driver.Conn, error) {
	opened, err := c.driver.Open(c.name)
	if err != nil {
		return nil, err
	}
	inner, ok := opened.(sqliteConn)
	if !ok {
		return nil, errors.Join(errors.New("store: the SQLite driver is not the one that was built for"), opened.Close())
	}
	return &conn{sqliteConn: inner, turn: c.turn, kept: map[string]*statement{}}, nil
}

// Driver implements driver.Connector.
func (c *connector) Driver() driver.Driver { return c.driver }

// sqliteConn is what a connection of the driver can do.
type sqliteConn interface {
	driver.Conn
	driver.Pinger
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.SessionResetter
	driver.Validator
}

// conn is a connection. database/sql uses it from one goroutine at a time.
type conn struct {
	sqliteConn
	turn chan struct{}
	in   bool // a transaction, and it is our turn
	kept map[string]*statement
	uses int // of kept, so far
}

// statement is compiled and may be used again.
type statement struct {
	sqliteStmt
	busy bool // somebody reads its rows
	used int  // the use of it that was last
}

type sqliteStmt interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

// Close implements driver.Conn.
func (c *conn) Close() error {
	var failed []error
	for _, s := range c.kept {
		failed = append(failed, s.Close())
	}
	clear(c.kept)
	return errors.Join(append(failed, c.sqliteConn.Close())...)
}

// BeginTx implements driver.ConnBeginTx.
func (c *conn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	if opts.ReadOnly {
		return c.sqliteConn.BeginTx(ctx, opts)
	}
	leave, err := c.queue(ctx)
	if err != nil {
		return nil, err
	}
	inner, err := c.sqliteConn.BeginTx(ctx, opts)
	if err != nil {
		leave()
		return nil, err
	}
	c.in = true
	return &transaction{Tx: inner, end: func() { c.in = false; leave() }}, nil
}

// ExecContext implements driver.ExecerContext.
func (c *conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	leave, err := c.queueFor(ctx, query)
	if err != nil {
		return nil, err
	}
	defer leave()
	s, done, err := c.statement(ctx, query)
	if err != nil {
		return nil, err
	}
	defer done()
	return s.ExecContext(ctx, args)
}

// QueryContext implements driver.QueryerContext.
func (c *conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	leave, err := c.queueFor(ctx, query)
	if err != nil {
		return nil, err
	}
	s, done, err := c.statement(ctx, query)
	if err != nil {
		leave()
		return nil, err
	}
	inner, err := s.QueryContext(ctx, args)
	if err != nil {
		done()
		leave()
		return nil, err
	}
	return &rows{Rows: inner, end: sync.OnceFunc(func() { done(); leave() })}, nil
}

// statement returns query compiled. done must be called when its rows are read.
func (c *conn) statement(ctx context.Context, query string) (s *statement, done func(), err error) {
	c.uses++
	if s := c.kept[query]; s != nil && !s.busy {
		s.busy, s.used = true, c.uses
		return s, func() { s.busy = false }, nil
	}
	made, err := c.PrepareContext(ctx, query)
	if err != nil {
		return nil, nil, err
	}
	inner, ok := made.(sqliteStmt)
	if !ok {
		return nil, nil, errors.Join(errors.New("store: the SQLite driver is not the one that was built for"), made.Close())
	}
	s = &statement{sqliteStmt: inner, busy: true, used: c.uses}
	if len(query) > keptLength || c.kept[query] != nil || !c.room() {
		return s, func() { _ = s.Close() }, nil // what failed was said by its use
	}
	c.kept[query] = s
	return s, func() { s.busy = false }, nil
}

// room makes room for one more statement, if it can.
func (c *conn) room() bool {
	if len(c.kept) < keptStatements {
		return true
	}
	oldest := ""
	for query, s := range c.kept {
		if !s.busy && (oldest == "" || s.used < c.kept[oldest].used) {
			oldest = query
		}
	}
	if oldest == "" {
		return false
	}
	_ = c.kept[oldest].Close()
	delete(c.kept, oldest)
	return true
}

// queueFor is queue for a statement by itself, if it writes.
func (c *conn) queueFor(ctx context.Context, query string) (leave func(), err error) {
	if c.in || !writing.MatchString(query) {
		return func() {}, nil
	}
	return c.queue(ctx)
}

// queue waits until it is our turn to write, but not for ever.
func (c *conn) queue(ctx context.Context) (leave func(), err error) {
	select {
	case c.turn <- struct{}{}:
		return func() { <-c.turn }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(turnTime):
		return func() {}, nil
	}
}

// writing begins a statement that writes. One that does and is not known here waits as
// SQLite has it.
var writing = regexp.MustCompile(`^(?i:\s*(?:INSERT|UPDATE|DELETE|REPLACE)\s)`)

// transaction tells when it is over.
type transaction struct {
	driver.Tx
	end func()
}

// Commit implements driver.Tx. One that fails is rolled back by the driver.
func (t *transaction) Commit() error {
	defer t.end()
	return t.Tx.Commit()
}

// Rollback implements driver.Tx.
func (t *transaction) Rollback() error {
	defer t.end()
	return t.Tx.Rollback()
}

// rows tell when they are read.
type rows struct {
	driver.Rows
	end func()
}

// Close implements driver.Rows.
func (r *rows) Close() error {
	defer r.end()
	return r.Rows.Close()
}
