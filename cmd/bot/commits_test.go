package main

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// mostCommits is how many transactions a message with its answer takes:
// the sync that brings it, what is heard, what is asked, what is answered, what became of
// the sending, and the sync that shows the answer.
const mostCommits = 6

// Every commit waits for the disk, and all rooms write one after the other. More than these
// is a promise that is kept twice.
func TestCommitsOfAnAnswer(t *testing.T) {
	r, _ := withEditing(t)
	room := r.direct()
	least := 1 << 20
	for i := range 8 { // the least of them: what the program does besides counts too
		before, log := r.commits()
		asked := r.s.Say(you, room, fmt.Sprintf("hello #word%d", i))
		r.until("no answer that is known everywhere", func() bool {
			return r.count(`SELECT count(*) FROM outbox AS o JOIN matrix_room AS m ON m.id = o.room JOIN inbox AS i ON i.id = o.reply_to
				WHERE o.reply_to = ? AND o.state = 'sent' AND m.last_event = o.event_id AND i.state = 'done'`, asked) == 1
		})
		after, same := r.commits()
		if log == same {
			least = min(least, after-before)
		}
	}
	t.Logf("%d commits", least)
	if least > mostCommits || least < 3 {
		t.Errorf("a message and its answer take %d commits, want at most %d", least, mostCommits)
	}
}

// commits counts the transactions in the log of the bot's database, and returns which log
// that is: SQLite begins another one when what was written is in the database.
func (r *running) commits() (n int, log uint64) {
	r.t.Helper()
	wal, err := os.ReadFile(filepath.Join(r.dir, "data", "bot.db-wal"))
	if err != nil || len(wal) < 32 {
		r.t.Fatalf("%d bytes, %v", len(wal), err)
	}
	page := int(binary.BigEndian.Uint32(wal[8:]))
	log = binary.BigEndian.Uint64(wal[16:])
	for frame := wal[32:]; len(frame) >= 24+page; frame = frame[24+page:] {
		if binary.BigEndian.Uint64(frame[8:]) != log {
			break // of the log before
		}
		if binary.BigEndian.Uint32(frame[4:]) > 0 { // the last frame of a transaction says how large the database is
			n++
		}
	}
	return n, log
}
