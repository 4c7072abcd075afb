// Package memory keeps what the assistant was told: entries in the database, with
// a journal of everything that was done to them, and text files that show them
// and that people may edit. Each entry is seen only by those it belongs to.
//
// # Entries
//
// The rows memory and memory_op are the truth. An entry's text never changes; a correction is an
// entry of its own; each change is an operation with before and after, so that it can be undone.
// Every change goes through Store.write: a lock that other processes respect, edits of the
// files, one transaction, then the files (package file). Isolation.Visible alone
// says whose memories a turn may see.
//
// Forgetting empties entry and journal, and removes the text from index, files, transcript (except
// people's own words), stored prompts and free pages. A salted hash stays, so that it is not
// learned again. Merge puts one shorter entry in place of several; every number, name,
// quotation and negation must survive (text.Lost), because a model wrote it.
//
// What is looked for is found by package search, which knows documents by their numbers; Search
// gives them their entries. Its index is changed in the transaction that changes an entry.
package memory
