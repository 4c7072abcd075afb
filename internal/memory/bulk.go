package memory

import (
	"context"
	"strings"

	"reverie/internal/store"
)

// bulk writes many rows of one table with few statements: what a statement takes by
// itself, the opening of each of the table's indexes above all, is as much as a row.
type bulk struct {
	tx            store.DBTX
	insert, after string // what stands before and behind VALUES (…)
	width         int    // columns
	args          []any  // of the rows that are not written yet
}

// bulkRows is how many rows a statement writes.
const bulkRows = 32

// add writes a row, now or together with those that follow. flush writes the last.
func (m *bulk) add(ctx context.Context, row ...any) error {
	m.args = append(m.args, row...)
	if len(m.args) < bulkRows*m.width {
		return nil
	}
	return m.write(ctx, bulkRows)
}

func (m *bulk) flush(ctx context.Context) error {
	for len(m.args) > 0 {
		if err := m.write(ctx, 1); err != nil {
			return err
		}
	}
	return nil
}

func (m *bulk) write(ctx context.Context, rows int) error {
	one := "(" + strings.Repeat("?, ", m.width-1) + "?)"
	_, err := m.tx.ExecContext(ctx, m.insert+" VALUES "+strings.Repeat(one+", ", rows-1)+one+m.after, m.args[:rows*m.width]...)
	m.args = m.args[:copy(m.args, m.args[rows*m.width:])]
	return err
}
