// Package session owns conversations: one goroutine per room keeps its history,
// runs its turns (prompt, model, tools, reply) and answers its commands.
package session
