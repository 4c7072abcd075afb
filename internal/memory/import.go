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
// so that an import can be repeated.
func (m *Importer) Import(ctx context.Context, name string, r io.Reader) (ImportResult, error) {
	entries, done, err := m.read(name, r)
	if err != nil {
		return ImportResult{}, err
	}
	tx, err := m.DB.BeginTx(ctx, nil)
	if err != nil {
		return ImportResult{}, fmt.Errorf("import %s: %w", name, err)
	}
	defer tx.Rollback()
	fresh, err := m.unknown(ctx, tx, name, entries)
	if err != nil {
		return ImportResult{}, err
	}
	done.Added, done.Known = len(fresh), len(entries)-len(fresh)
	if len(fresh) == 0 {
		return done, nil
	}
	if err := m.write(ctx, tx, fresh); err != nil {
		return ImportResult{}, fmt.Errorf("import %s: nothing was imported: %w", name, err)
	}
	if err := tx.Commit(); err != nil {
		return ImportResult{}, fmt.Errorf("import %s: nothing was imported: %w", name, err)
	}
	return done, nil
}

// imported is an entry and its place in the file.
type imported struct {
	Entry
	line int
}

// read parses and checks the whole file before anything is written.
func (m *Importer) read(name string, r io.Reader) ([]imported, ImportResult, error) {
	var (
		entries []imported
		bad     BadLines
		done    ImportResult
		ignored = map[string]bool{}
		now     = m.Now()
		in      = bufio.NewReaderSize(r, 1<<16)
	)
	for n := 1; ; n++ {
		line, err := readLine(in)
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil && n == 1 {
			line = bytes.TrimPrefix(line, bom)
		}
		if err == nil && len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		var e Entry
		if err == nil {
			e, err = m.entry(line, now, ignored)
		} else if !errors.Is(err, errLongLine) {
			return nil, done, fmt.Errorf("import %s: line %d: %w", name, n, err)
		}
		if err != nil {
			bad = append(bad, fmt.Errorf("%s:%d: %w", name, n, err))
			continue
		}
		entries = append(entries, imported{e, n})
	}
	if len(bad) > 0 {
		return nil, done, bad
	}
	done.Lines, done.Ignored = len(entries), slices.Sorted(maps.Keys(ignored))
	return entries, done, nil
}

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

// unknown leaves out what is there already, and what the file says twice.
func (m *Importer) unknown(ctx context.Context, tx *sql.Tx, name string, entries []imported) ([]imported, error) {
	scopes := map[Scope]bool{}
	for _, e := range entries {
		scopes[e.Scope] = true
	}
	byRef, byText := map[int64]int64{}, map[int64]bool{} // ref → text; all as hashes
	for _, scope := range slices.Sorted(maps.Keys(scopes)) {
		if err := knownIn(ctx, tx, scope, byRef, byText); err != nil {
			return nil, fmt.Errorf("import %s: %w", name, err)
		}
	}
	var fresh []imported
	var bad BadLines
	for _, e := range entries {
		text := textKey(e.Scope, textHash(e.Text), e.Conversation, e.Seq)
		if e.Ref == "" {
			if byText[text] {
				continue
			}
			byText[text] = true
			fresh = append(fresh, e)
			continue
		}
		ref, same := hash64("ref", string(e.Scope), e.Ref), hash64(e.Text)
		switch old, there := byRef[ref]; {
		case !there:
			byRef[ref] = same
			fresh = append(fresh, e)
		case old != same:
			bad = append(bad, fmt.Errorf("%s:%d: ref %q stands for another text already; give this one a ref of its own, or forget the other first", name, e.line, e.Ref))
		}
	}
	if len(bad) > 0 {
		return nil, bad
	}
	return fresh, nil
}

func textKey(scope Scope, hash, conversation string, seq int) int64 {
	return hash64("text", string(scope), hash, conversation, strconv.Itoa(seq))
}

func knownIn(ctx context.Context, tx *sql.Tx, scope Scope, byRef map[int64]int64, byText map[int64]bool) error {
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
			byRef[hash64("ref", string(scope), ref)] = hash64(text)
		}
		byText[textKey(scope, hash, conversation, seq)] = true
	}
	return rows.Err()
}

func (m *Importer) write(ctx context.Context, tx *sql.Tx, fresh []imported) error {
	// Rows go to random places of several trees: without room for these, pages
	// are written and read again all the time. The connection gets its own back.
	var room int
	if err := tx.QueryRowContext(ctx, `PRAGMA cache_size`).Scan(&room); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, `PRAGMA cache_size = -65536`); err != nil {
		return err
	}
	defer tx.ExecContext(context.WithoutCancel(ctx), fmt.Sprintf(`PRAGMA cache_size = %d`, room))
	batch, done := newBatch(), 0
	p := prepare(tx)
	defer p.close()
	for chunk := range slices.Chunk(fresh, importChunk) {
		all := make([]source, len(chunk))
		for i, e := range chunk {
			n, err := insertEntry(ctx, p, e.Entry, "import", batch)
			if err != nil {
				return err
			}
			all[i] = source{doc: n, class: classActive, scope: e.Scope, text: e.Text, subject: e.Subject,
				conversation: e.Conversation, seq: e.Seq, at: e.ObservedAt.UnixMilli(), rev: e.Rev}
		}
		if err := m.Index.indexWith(ctx, p, nil, all); err != nil {
			return err
		}
		if done += len(chunk); m.Progress != nil {
			m.Progress(done, len(fresh))
		}
	}
	_, err := tx.ExecContext(ctx, `UPDATE memory_change SET n = n + 1`)
	return err
}
