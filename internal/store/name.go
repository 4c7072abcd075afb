package store

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"fmt"
	"net/url"
	"strings"
)

// maxName is the maximum length of an escaped name, in bytes. File systems allow 255, including
// ".txt" and the suffix of a temporary file.
const maxName = 150

// FileName converts a Matrix id into a file name that is safe everywhere and unique. Bytes that are
// not isPlain become "=" and two hex digits. Upper case is escaped, because some file systems
// ignore case and room ids do not. An id that is too long is truncated and ends in "~" and its
// hash.
func FileName(id string) string {
	var b strings.Builder
	cut := 0 // length of the truncated form
	for i := 0; i < len(id); i++ {
		c := id[i]
		if b.Len() <= maxName/2 {
			cut = b.Len()
		}
		if isPlain(c) && !(c == '.' && i == 0) { // no hidden files, no ".."
			b.WriteByte(c)
			continue
		}
		fmt.Fprintf(&b, "=%02x", c)
	}
	name := b.String()
	if len(name) <= maxName {
		return name
	}
	sum := sha256.Sum256([]byte(id))
	return name[:cut] + "~" + hex.EncodeToString(sum[:16])
}

// isPlain reports whether c is not escaped. "=" and "~" always are.
func isPlain(c byte) bool {
	return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || strings.IndexByte("@!._-", c) >= 0
}

// FileNameID returns the id of a FileName; false if the name was truncated or is not one of
// FileName.
func FileNameID(name string) (string, bool) {
	id, err := url.PathUnescape(strings.ReplaceAll(name, "=", "%"))
	return id, err == nil && !strings.Contains(name, "~") && id != "" && FileName(id) == name
}

// The alphabet omits 0, 1, 8 and 9, which are easy to misread.
var ids = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// NewID returns a random row id such as "task_ab12cd34". In case of a collision the insert fails.
func NewID(kind string) string {
	b := make([]byte, 5)
	rand.Read(b) // never fails
	return kind + "_" + ids.EncodeToString(b)
}

// NormalizeID accepts the forms that people and models write: "#task_x", "TASK_X".
func NormalizeID(id string) string {
	return strings.ToLower(strings.TrimPrefix(strings.TrimSpace(id), "#"))
}
