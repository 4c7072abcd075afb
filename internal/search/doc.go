// Package search finds documents and past messages by their words and their meaning.
//
// It reads documents through the view document and knows them by number; their texts belong to package memory.
// Past messages are its own (past_message). Package text makes terms of texts: folded, stemmed in their language,
// pairs of characters where a script has no spaces. FTS is the full-text index in bot.db. rank.go has the features
// and their weights in one table. A text is also found by its neighbours in the conversation and by its day.
// Scopes are part of the row numbers, so other scopes' rows are not read. At most 400 documents of a scope are
// scored for a question.
//
// Hybrid adds vectors (package vector), which a server may compare (package qdrant). Below the floor nothing is
// found, so that small talk brings up nothing.
package search
