// Bot is Reverie: an assistant that lives in Matrix rooms and remembers.
//
// A message travels like this: the matrix client stores it in its inbox and
// hands it to the session of its room; the session keeps it in the history;
// the prompt assembler builds what the model is sent from the files in the
// data folder, the memory, the tasks and the skills; the llm models answer;
// tools act; and the reply leaves through the client's outbox.
//
// This package is the only one that reads flags and the environment; package config reads the configuration. wire.go
// puts the parts together, and there is one file per subcommand.
package main
