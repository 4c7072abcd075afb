// Package memory keeps what the assistant remembers. Entries and their journal live in the
// database; text files show the entries, and people may edit them. Each entry is seen only in its
// scope.
//
// # Entries
//
// The tables memory and memory_op are the truth. An entry's text never changes: a correction is an
// entry of its own. Each change is an operation with before and after, so that it can be undone.
// Every change goes through Store.write: it takes a lock that other processes respect, reads edits
// of the files, runs one transaction, then writes the files (package file). Isolation.Visible alone
// says whose memories a turn may see.
//
// Forgetting empties entry and journal, and removes the text from index, files, transcript (except
// people's own words), stored prompts and free pages. A salted hash stays, so that the text is not
// learned again. A merge replaces several entries by a shorter one; every number, name, quotation
// and negation must survive (text.Lost), because a model wrote it.
//
// Package search finds documents by number; Search loads their entries. The transaction that
// changes an entry also updates the index.
package memory
