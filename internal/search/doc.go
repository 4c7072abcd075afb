// Package search finds documents and past messages by words and by meaning.
//
// It reads documents through the view document and identifies them by number; their texts belong to
// package memory. Past messages are its own (past_message). Package text turns texts into terms. FTS
// is the full-text index in bot.db; rank.go has the features and their weights. A text is also
// found by its neighbours in the conversation and by its date.
//
// Scopes are part of the row numbers, so rows of other scopes are not read. At most 400 documents
// of a scope are scored for a query.
//
// Hybrid adds vectors (package vector), which a server may compare (package qdrant). Results below
// the floor are dropped, so that small talk finds nothing.
package search
