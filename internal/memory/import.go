package memory

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Importer takes memories from a file of JSON lines.
type Importer struct {
	DB       *sql.DB
	Index    *FTS
	Scope    Scope          // of lines that name none; empty = every line must
	Location *time.Location // of times without a zone; nil = UTC
	Now      func() time.Time
	Progress func(done, total int) // may be nil
}

// ImportResult says what an import did.
type ImportResult struct {
	Lines   int      `json:"lines"`
	Added   int      `json:"added"`
	Known   int      `json:"known"`             // they were there already, word for word
	Ignored []string `json:"ignored,omitempty"` // fields that mean nothing here
}

// BadLines is the error of Import for a file that holds lines it cannot take:
// one error for each, with its place.
type BadLines []error

// Error lists the first of them and counts the rest.
func (b BadLines) Error() string {
	const shown = 20
	var out strings.Builder
	for i, err := range b {
		if i == shown {
			fmt.Fprintf(&out, "\n… and %d more", len(b)-shown)
			break
		}
		if i > 0 {
			out.WriteByte('\n')
		}
		out.WriteString(err.Error())
	}
	out.WriteString("\nNothing was imported. Mend these lines and import the file again.")
	return out.String()
}

// Unwrap returns them all.
func (b BadLines) Unwrap() []error { return b }

const (
	maxImportText = 100_000 // bytes of one text
	maxImportLine = 1 << 20 // bytes of one line
	importChunk   = 4000    // lines indexed at once
)

// record is a line of the file.
type record struct {
	Text         string          `json:"text"`
	Scope        Scope           `json:"scope"`
	Subject      string          `json:"subject"`
	Source       Source          `json:"source"`
	ObservedAt   json.RawMessage `json:"observed_at"`
	Ref          string          `json:"ref"`
	Conversation string          `json:"conversation"`
	Seq          int             `json:"seq"`
}

var recordFields = []string{"text", "scope", "subject", "source", "observed_at", "ref", "conversation", "seq"}

// Import adds the lines of r, which people know as name, in one transaction: all
// of them, or with an error none. Lines that are there already are left alone,
// so that an import can be repeated. It reads r twice, and keeps little of it.
func (m *Importer) Import(ctx context.Context, name string, r io.ReadSeeker) (ImportResult, error) {
	checked := survey{scopes: map[Scope]bool{}, ignored: map[string]bool{}}
	if err := m.each(name, r, checked.ignored, func(e Entry, _ int) error {
		checked.lines++
		checked.scopes[e.Scope] = true
		return nil
	}); err != nil {
		return ImportResult{}, err
	}
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return ImportResult{}, fmt.Errorf("import %s: %w", name, err)
	}
	tx, err := m.DB.BeginTx(ctx, nil)
	if err != nil {
		return ImportResult{}, fmt.Errorf("import %s: %w", name, err)
	}
	defer tx.Rollback()
	added, err := m.add(ctx, tx, name, r, checked)
	if bad := (BadLines)(nil); errors.As(err, &bad) {
		return ImportResult{}, err
	}
	if err == nil && added > 0 {
		err = tx.Commit()
	}
	if err != nil {
		if ctx.Err() != nil { // the database says it in many ways
			err = ctx.Err()
		}
		return ImportResult{}, fmt.Errorf("import %s: nothing was imported: %w", name, err)
	}
	return ImportResult{Lines: checked.lines, Added: added, Known: checked.lines - added, Ignored: slices.Sorted(maps.Keys(checked.ignored))}, nil
}

// survey is what the first reading finds out.
type survey struct {
	lines   int
	scopes  map[Scope]bool
	ignored map[string]bool
}

// each hands over every line of r as an entry. Lines that are none, and those
// that do refuses, are in its error, all of them.
func (m *Importer) each(name string, r io.Reader, ignored map[string]bool, do func(e Entry, line int) error) error {
	var bad BadLines
	now, in := m.Now(), bufio.NewReaderSize(r, 1<<16)
	for n := 1; ; n++ {
		line, err := readLine(in)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil && !errors.Is(err, errLongLine) {
			return fmt.Errorf("import %s: line %d: %w", name, n, err)
		}
		if n == 1 {
			line = bytes.TrimPrefix(line, bom)
		}
		if err == nil && len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		var e Entry
		if err == nil {
			e, err = m.entry(line, now, ignored)
		}
		if err == nil {
			err = do(e, n)
		}
		if failed := (stop{}); errors.As(err, &failed) {
			return failed.error
		}
		if err != nil {
			bad = append(bad, fmt.Errorf("%s:%d: %w", name, n, err))
		}
	}
	if len(bad) > 0 {
		return bad
	}
	return nil
}

// stop is an error that is not the line's.
type stop struct{ error }

var errLongLine = fmt.Errorf("the line is longer than %d bytes", maxImportLine)

// readLine reads one line of any length, but keeps only what may be one.
func readLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	long, any := false, false
	for {
		part, err := in.ReadSlice('\n')
		any = any || len(part) > 0
		if len(line)+len(part) <= maxImportLine+1 {
			line = append(line, part...)
		} else {
			long = true
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && !any:
			return nil, io.EOF
		case err != nil && !errors.Is(err, io.EOF):
			return nil, err
		case long:
			return nil, errLongLine
		}
		return line, nil
	}
}

// entry makes an entry of one line.
func (m *Importer) entry(line []byte, now time.Time, ignored map[string]bool) (Entry, error) {
	if !utf8.Valid(line) {
		return Entry{}, errors.New("the line is not valid UTF-8")
	}
	var fields map[string]json.RawMessage
	var r record
	if err := json.Unmarshal(line, &fields); err != nil {
		return Entry{}, jsonError(err)
	}
	if err := json.Unmarshal(line, &r); err != nil {
		return Entry{}, jsonError(err)
	}
	for f := range fields {
		if !slices.Contains(recordFields, f) {
			ignored[f] = true
		}
	}
	text, err := importText(r.Text)
	if err != nil {
		return Entry{}, err
	}
	scope := cmp.Or(r.Scope, m.Scope)
	if !scope.valid() {
		return Entry{}, fmt.Errorf("scope %q: give private:@user:server, room:!id:server or shared", scope)
	}
	source := cmp.Or(r.Source, Imported)
	if !slices.Contains(allSources, source) {
		return Entry{}, fmt.Errorf("source %q: it is one of %s", source, joinSources())
	}
	at, err := m.time(r.ObservedAt, now)
	if err != nil {
		return Entry{}, err
	}
	return Entry{ID: newID(), Scope: scope, Text: text, Subject: oneLine(r.Subject), Kind: Fact, Source: source, State: Active,
		Ref: oneLine(r.Ref), Conversation: oneLine(r.Conversation), Seq: r.Seq, ObservedAt: at, CreatedAt: now, UpdatedAt: now, Rev: 1}, nil
}

var allSources = []Source{UserExplicit, Assistant, Harvest, DreamingMerge, FromFile, Imported}

func joinSources() string {
	var out []string
	for _, s := range allSources {
		out = append(out, string(s))
	}
	return strings.Join(out, ", ")
}

func jsonError(err error) error {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) && wrong.Field != "" {
		return fmt.Errorf("%s is a %s; it must be a %s", wrong.Field, wrong.Value, kindOf(wrong.Type.Kind().String()))
	}
	if errors.As(err, &wrong) {
		return errors.New("the line is no JSON object")
	}
	return fmt.Errorf("the line is no JSON object: %w", err)
}

func kindOf(goKind string) string {
	if goKind == "int" {
		return "whole number"
	}
	return goKind
}

// importText is text as one line. Control characters, which other programs leave
// in what they export, become spaces.
func importText(text string) (string, error) {
	text = oneLine(text)
	switch {
	case text == "":
		return "", errors.New("text is missing or empty")
	case len(text) > maxImportText:
		return "", fmt.Errorf("text is %d bytes long, and at most %d are taken: divide it", len(text), maxImportText)
	}
	return text, nil
}

func oneLine(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) || r == '\uFEFF' }), " ")
}

func (s Scope) valid() bool {
	user, private := strings.CutPrefix(string(s), privatePrefix)
	room, isRoom := strings.CutPrefix(string(s), roomPrefix)
	return s == Shared || (private && user != "" || isRoom && room != "") && !strings.ContainsFunc(string(s), unicode.IsControl)
}

// layouts are how times may be written, beside RFC 3339 and Unix seconds.
var layouts = []string{
	time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999", "2006-01-02T15:04", "2006-01-02 15:04", "2006-01-02",
	"2006-01-02 15:04:05Z07:00", "2006/01/02", "3:04 pm on 2 January, 2006", "2 January 2006", "2 January, 2006", "January 2, 2006",
}

func (m *Importer) time(raw json.RawMessage, now time.Time) (time.Time, error) {
	text := strings.TrimSpace(string(raw))
	if text == "" || text == "null" || text == `""` {
		return now, nil
	}
	if n, err := strconv.ParseFloat(text, 64); err == nil {
		if n > 1e11 { // milliseconds
			n /= 1000
		}
		if n < -1e11 || n != n {
			return time.Time{}, badTime(text)
		}
		return time.UnixMilli(int64(n * 1000)).UTC(), nil
	}
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return time.Time{}, badTime(text)
	}
	where := m.Location
	if where == nil {
		where = time.UTC
	}
	for _, layout := range layouts {
		if t, err := time.ParseInLocation(layout, strings.TrimSpace(s), where); err == nil && t.Year() > 0 {
			return t, nil
		}
	}
	return time.Time{}, badTime(text)
}

func badTime(text string) error {
	return fmt.Errorf("observed_at %s: write it as 2026-01-31T18:30:00Z or 2026-01-31", text)
}

// known is what is there already, and what the file said before.
type known struct {
	refs  map[int64]int64 // ref → text; all as hashes
	texts map[int64]bool
}

// has reports whether e is there. The same ref with another text is an error.
func (k known) has(e Entry) (bool, error) {
	if e.Ref == "" {
		text := textKey(e.Scope, textHash(e.Text), e.Conversation, e.Seq)
		there := k.texts[text]
		k.texts[text] = true
		return there, nil
	}
	ref, text := hash64("ref", string(e.Scope), e.Ref), hash64(e.Text)
	old, there := k.refs[ref]
	if there && old != text {
		return true, fmt.Errorf("ref %q stands for another text already; give this one a ref of its own, or forget the other first", e.Ref)
	}
	k.refs[ref] = text
	return there, nil
}

func textKey(scope Scope, hash, conversation string, seq int) int64 {
	return hash64("text", string(scope), hash, conversation, strconv.Itoa(seq))
}

func (k known) read(ctx context.Context, tx *sql.Tx, scope Scope) error {
	rows, err := tx.QueryContext(ctx, `SELECT ref, text, hash, conversation, seq FROM memory WHERE scope = ?`, scope)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var ref, text, hash, conversation string
		var seq int
		if err := rows.Scan(&ref, &text, &hash, &conversation, &seq); err != nil {
			return err
		}
		if ref != "" {
			k.refs[hash64("ref", string(scope), ref)] = hash64(text)
		}
		k.texts[textKey(scope, hash, conversation, seq)] = true
	}
	return rows.Err()
}

// add stores what is new of r, and returns how much that is.
func (m *Importer) add(ctx context.Context, tx *sql.Tx, name string, r io.Reader, checked survey) (added int, err error) {
	k := known{map[int64]int64{}, map[int64]bool{}}
	for _, scope := range slices.Sorted(maps.Keys(checked.scopes)) {
		if err := k.read(ctx, tx, scope); err != nil {
			return 0, err
		}
	}
	back, err := roomy(ctx, tx)
	if err != nil {
		return 0, err
	}
	defer back()
	p := prepare(tx)
	defer p.close()
	batch, read := newBatch(), 0
	var chunk []Entry
	flush := func() error {
		if err := m.store(ctx, p, chunk, batch); err != nil {
			return stop{err}
		}
		added, chunk = added+len(chunk), chunk[:0]
		if m.Progress != nil {
			m.Progress(read, checked.lines)
		}
		return nil
	}
	err = m.each(name, r, checked.ignored, func(e Entry, _ int) error {
		read++
		if there, err := k.has(e); there || err != nil {
			return err
		}
		if chunk = append(chunk, e); len(chunk) < importChunk {
			return nil
		}
		return flush()
	})
	if err == nil && len(chunk) > 0 {
		err = flush()
	}
	if failed := (stop{}); errors.As(err, &failed) {
		err = failed.error
	}
	if err == nil && added > 0 {
		_, err = tx.ExecContext(ctx, `UPDATE memory_change SET n = n + 1`)
	}
	return added, err
}

// roomy gives the connection of tx room for the trees that rows go to random
// places of: without it, pages are written and read again all the time. back
// gives it its own again.
func roomy(ctx context.Context, tx *sql.Tx) (back func(), err error) {
	var room int
	if err := tx.QueryRowContext(ctx, `PRAGMA cache_size`).Scan(&room); err != nil {
		return nil, err
	}
	if _, err := tx.ExecContext(ctx, `PRAGMA cache_size = -65536`); err != nil {
		return nil, err
	}
	return func() {
		// Best effort: more room than asked for harms nobody.
		_, _ = tx.ExecContext(context.WithoutCancel(ctx), fmt.Sprintf(`PRAGMA cache_size = %d`, room))
	}, nil
}

// store writes entries and brings the index up to date with them.
func (m *Importer) store(ctx context.Context, p *prepared, entries []Entry, batch string) error {
	all := make([]source, len(entries))
	for i, e := range entries {
		n, err := insertEntry(ctx, p, e, "import", batch)
		if err != nil {
			return err
		}
		all[i] = source{doc: n, class: classActive, scope: e.Scope, text: e.Text, subject: e.Subject,
			conversation: e.Conversation, seq: e.Seq, at: e.ObservedAt.UnixMilli(), rev: e.Rev}
	}
	return m.Index.indexWith(ctx, p, nil, all)
}
