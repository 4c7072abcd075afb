package prompt

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"time"

	"reverie/internal/history"
	"reverie/internal/store"
)

// StoredReport is the report of a request that was sent.
type StoredReport struct {
	Room    history.Timeline
	Message int64 // the newest of the conversation then
	At      time.Time
	Report
}

// saveReport stores what became of the sections of a request, and deletes the reports before the newest keep. It holds
// no text: styles quote people, and problems files.
func saveReport(ctx context.Context, tx *sql.Tx, room history.Timeline, message int64, at time.Time, r Report, keep int) error {
	r.Style, r.Problems = nil, nil
	b, _ := json.Marshal(r) // texts and numbers always encode
	done, err := tx.ExecContext(ctx, `INSERT INTO prompt_report (room, message, at, report) VALUES (?, ?, ?, ?)`,
		room, message, at.UnixMilli(), string(b))
	if err != nil {
		return store.Wrap(err, "prompt: store report")
	}
	id, _ := done.LastInsertId() // SQLite has it
	return store.Exec(ctx, tx, `DELETE FROM prompt_report WHERE id <= ?`, id-int64(keep))
}

// StoredReports lists the newest n reports of rooms, the newest first.
func StoredReports(ctx context.Context, db store.DBTX, rooms []history.Timeline, n int) ([]StoredReport, error) {
	all, err := store.List(ctx, db, func(row store.Row) (r StoredReport, err error) {
		var at int64
		var report string
		if err := row.Scan(&r.Room, &r.Message, &at, &report); err != nil {
			return r, err
		}
		r.At = time.UnixMilli(at)
		return r, json.Unmarshal([]byte(report), &r.Report)
	}, `SELECT room, message, at, report FROM prompt_report WHERE room IN (SELECT value FROM json_each(?)) ORDER BY id DESC LIMIT ?`,
		store.Array(rooms), n)
	return all, store.Wrap(err, "prompt: read reports")
}

// StoredPrefix returns the system text of a conversation's current epoch, and its Report.PrefixHash. Both are empty
// before the first request.
func StoredPrefix(ctx context.Context, db *store.DB, room history.Timeline) (text, hash string, err error) {
	e, err := loadEpoch(ctx, db, room)
	if err != nil || e == nil {
		return "", "", err
	}
	sum := sha256.Sum256([]byte(e.prefix))
	return e.prefix, hex.EncodeToString(sum[:6]), nil
}
