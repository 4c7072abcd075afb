package account

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"

	"github.com/rs/zerolog"
)

// zerologWriter passes mautrix's warnings and errors to log, without request and response bodies: they
// contain what people wrote.
type zerologWriter struct{ log *slog.Logger }

// secretFields are log fields that may hold message text or secrets.
var secretFields = []string{"req_body", "content", "body", "response", "resp_body", "event_content", "since"}

// demoted are warnings that are logged as debug: ordinary events, and failures that the caller
// logs. A new Olm session is stored later, see e2ee.Store.
var demoted = []string{
	"Didn't find olm session to encrypt group session",
	"Request canceled",
	"Unsupported event type in encrypted event",
	"Failed to save new olm session in crypto store after decrypting",
	"Request failed", // the caller logs it
	"Request parsing failed",
}

func (w zerologWriter) Write(p []byte) (int, error) {
	var fields map[string]any
	if err := json.Unmarshal(p, &fields); err != nil {
		w.log.Warn("matrix library", "unreadable_log_bytes", len(p))
		return len(p), nil
	}
	text, _ := fields[zerolog.MessageFieldName].(string)
	level := slog.LevelWarn
	switch {
	case slices.Contains(demoted, text):
		level = slog.LevelDebug
	case fields[zerolog.LevelFieldName] != zerolog.LevelWarnValue:
		level = slog.LevelError
	}
	delete(fields, zerolog.MessageFieldName)
	delete(fields, zerolog.LevelFieldName)
	for _, b := range secretFields {
		delete(fields, b)
	}
	attrs := make([]slog.Attr, 0, len(fields))
	for _, k := range slices.Sorted(maps.Keys(fields)) {
		attrs = append(attrs, slog.Any(k, fields[k]))
	}
	w.log.LogAttrs(context.Background(), level, "matrix library: "+text, attrs...)
	return len(p), nil
}
