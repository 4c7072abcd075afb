// Bot is Reverie: an assistant that lives in Matrix rooms and remembers.
//
// The Matrix client stores a message in its inbox and delivers it to the session of its room. The session
// adds it to the history. The prompt assembler builds the request from the data folder, memory, tasks and
// skills; a model answers and calls tools. The reply leaves through the client's outbox.
//
// This package parses flags and reads the environment; package config reads the configuration.
// wire.go assembles the parts, and each subcommand has its own file.
package main
