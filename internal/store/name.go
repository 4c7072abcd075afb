package store

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"strings"
)

// maxName is the longest escaped name, in bytes; file systems allow 255, and
// ".txt" and a temporary file's suffix come on top.
const maxName = 150

// FileName turns a Matrix id into a file name that is safe everywhere and means
// that id alone: what is not in plain() becomes "=" and two hex digits. Upper
// case is escaped, because some file systems do not tell it from lower case and
// room ids do. An id too long for a name is cut and ends in "~" and its hash.
func FileName(id string) string {
	var b strings.Builder
	cut := 0 // where the shortened form ends
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

// plain bytes stand for themselves; "=" and "~" never do.
func isPlain(c byte) bool {
	return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || strings.IndexByte("@!._-", c) >= 0
}

// FileNameID returns the id that a name stands for; false if it was shortened, or is
// no name that FileName makes.
func FileNameID(name string) (string, bool) {
	id, err := url.PathUnescape(strings.ReplaceAll(name, "=", "%"))
	return id, err == nil && !strings.Contains(name, "~") && id != "" && FileName(id) == name
}
