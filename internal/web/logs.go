package web

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"reverie/internal/text"
)

const keptLines, shownLines, maxLine = 2000, 200, 2000 // maxLine is in characters

// Remember returns a handler that passes records on to h and keeps the newest of rooms in memory. A Config whose Log has it
// shows them.
func Remember(h slog.Handler) slog.Handler { return remembering{Handler: h, kept: &logLines{}} }

type remembering struct {
	slog.Handler
	kept        *logLines
	attrs, room string // of its With
}

// logLines are the newest lines, the oldest first.
type logLines struct {
	sync.Mutex
	all []logLine
}

type logLine struct {
	at         time.Time
	level      slog.Level
	text, room string
}

func (h *remembering) add(a slog.Attr) {
	value := a.Value.Resolve().String()
	h.attrs += " " + a.Key + "=" + value
	if a.Key == "room" {
		h.room = value
	}
}

// WithAttrs implements slog.Handler.
func (h remembering) WithAttrs(attrs []slog.Attr) slog.Handler {
	for _, a := range attrs {
		h.add(a)
	}
	h.Handler = h.Handler.WithAttrs(attrs)
	return h
}

// WithGroup implements slog.Handler. The pages show no groups.
func (h remembering) WithGroup(name string) slog.Handler {
	h.Handler = h.Handler.WithGroup(name)
	return h
}

// Handle implements slog.Handler.
func (h remembering) Handle(ctx context.Context, r slog.Record) error {
	err := h.Handler.Handle(ctx, r)
	r.Attrs(func(a slog.Attr) bool { h.add(a); return true }) // h is a copy
	if h.room == "" {
		return err
	}
	h.kept.Lock()
	defer h.kept.Unlock()
	line := logLine{r.Time, r.Level, text.Clip(r.Message+h.attrs, maxLine), h.room}
	h.kept.all = append(h.kept.all[max(0, len(h.kept.all)-keptLines+1):], line)
	return err
}

// logBlock lists the newest log lines of a room, the newest first. Lines that name no room may tell of any, so no page
// shows them.
func (v *visit) logBlock(room string) block {
	out := block{Title: "Log lines since the start", Head: []string{"When", "Level", "What"}, Empty: "There are none."}
	h, remembers := v.cfg.Log.Handler().(remembering)
	if !remembers {
		return out
	}
	h.kept.Lock()
	all := slices.Clone(h.kept.all)
	h.kept.Unlock()
	for _, l := range slices.Backward(all) {
		if len(out.Rows) < shownLines && l.room == room {
			at := cell{Text: l.at.In(v.cfg.Zone).Format(time.DateTime), Class: "time"}
			out.Rows = append(out.Rows, v.row(at, l.level, long(l.text)))
		}
	}
	return out
}
