package store

import (
	"context"
	"database/sql/driver"
)

// maxStatements is how many prepared statements a connection keeps, some kilobytes each.
const maxStatements = 256

// connector opens connections that keep their statements prepared: parsing takes a third of the time
// of a short query.
type connector struct {
	sqlite driver.Driver
	dsn    string
}

// Driver implements driver.Connector.
func (c connector) Driver() driver.Driver { return c.sqlite }

// Connect implements driver.Connector.
func (c connector) Connect(context.Context) (driver.Conn, error) {
	conn, err := c.sqlite.Open(c.dsn)
	if err != nil {
		return nil, err
	}
	return &connection{sqliteConn: conn.(sqliteConn), idle: map[string]sqliteStmt{}}, nil
}

// sqliteConn has the methods of the driver's connections.
type sqliteConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

type sqliteStmt interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

type connection struct {
	sqliteConn
	idle map[string]sqliteStmt // by text; one that runs is not among them
}

func (c *connection) take(ctx context.Context, query string) (sqliteStmt, error) {
	if s, there := c.idle[query]; there {
		delete(c.idle, query)
		return s, nil
	}
	s, err := c.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	return s.(sqliteStmt), nil
}

// put keeps s for the next query. The driver has reset it and cleared its arguments.
func (c *connection) put(query string, s sqliteStmt) {
	if old, twice := c.idle[query]; twice {
		_ = old.Close()
	} else if len(c.idle) >= maxStatements {
		for other, o := range c.idle {
			_ = o.Close()
			delete(c.idle, other)
			break
		}
	}
	c.idle[query] = s
}

// ExecContext implements driver.ExecerContext. What is begun runs to its end: if SQLite interrupts a write, it undoes
// the whole transaction, in which others have written too.
func (c *connection) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	ctx = context.WithoutCancel(ctx)
	s, err := c.take(ctx, query)
	if err != nil {
		return nil, err
	}
	defer c.put(query, s)
	return s.ExecContext(ctx, args)
}

// QueryContext implements driver.QueryerContext. It runs to its end, as ExecContext does: it may be a write with
// RETURNING.
func (c *connection) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	ctx = context.WithoutCancel(ctx)
	s, err := c.take(ctx, query)
	if err != nil {
		return nil, err
	}
	rows, err := s.QueryContext(ctx, args)
	if err != nil {
		c.put(query, s)
		return nil, err
	}
	return result{rows, func() { c.put(query, s) }}, nil
}

// Close implements driver.Conn.
func (c *connection) Close() error {
	for _, s := range c.idle {
		_ = s.Close()
	}
	return c.sqliteConn.Close()
}

// result gives its statement back when it is closed.
type result struct {
	driver.Rows
	closed func()
}

// Close implements driver.Rows.
func (r result) Close() error {
	defer r.closed()
	return r.Rows.Close()
}
