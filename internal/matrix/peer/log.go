package peer

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"

	"github.com/rs/zerolog"
)

// logWriter passes mautrix's log lines to slog.
type logWriter struct{ log *slog.Logger }

// Write takes one JSON line.
func (w logWriter) Write(line []byte) (int, error) {
	var fields map[string]any
	if err := json.Unmarshal(line, &fields); err != nil {
		w.log.Warn("matrix: " + string(line))
		return len(line), nil
	}
	level, message := slog.LevelWarn, "matrix"
	if text, ok := fields[zerolog.MessageFieldName].(string); ok {
		message = "matrix: " + text
	}
	if fields[zerolog.LevelFieldName] == zerolog.LevelErrorValue {
		level = slog.LevelError
	}
	delete(fields, zerolog.MessageFieldName)
	delete(fields, zerolog.LevelFieldName)
	delete(fields, zerolog.TimestampFieldName)
	var attrs []any
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		attrs = append(attrs, slog.Any(key, fields[key]))
	}
	w.log.Log(context.Background(), level, message, attrs...)
	return len(line), nil
}
