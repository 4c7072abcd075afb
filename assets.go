// Package reverie embeds what the program writes at its first start: the default
// data files, and the database migrations. It is the only Go file at the root.
package reverie

import (
	"embed"
	"io/fs"
)

// The pattern names the default files one kind at a time and never data/ as a
// whole: at build time the owner's own MEMORIES.txt and bot.db may lie there,
// and a binary must not carry them away.
//
//go:embed data/BASE_PROMPT.txt data/COMPACTION_PROMPT.txt data/MEMORY_HARVEST_PROMPT.txt data/DREAM_*_PROMPT.txt
//go:embed data/prompts/*.txt
//go:embed data/prompts/assistant/tier?.txt data/prompts/developer/tier?.txt data/prompts/planning/tier?.txt
//go:embed data/prompts/debugger/tier?.txt data/prompts/user/tier?.txt
//go:embed data/prompts/steering/*.txt data/prompts/tools/*.txt
//go:embed data/personas/balanced.md data/personas/professional.md data/personas/creative.md
//go:embed data/personas/minimal.md data/personas/supportive.md
//go:embed data/messages/*.txt
var data embed.FS

//go:embed data/words/*.txt
var words embed.FS

//go:embed docs/*.md
var docs embed.FS

//go:embed migrations/*.sql migrations/upgrade/*.sql
var migrations embed.FS

// Data holds the default data files, rooted so that "BASE_PROMPT.txt" opens.
var Data fs.FS = rooted(data, "data")

// Words holds lists of words by language, rooted so that "en.txt" opens. They are no files of
// the data folder.
var Words fs.FS = rooted(words, "data/words")

// Docs holds the documentation, rooted so that "manual.md" opens.
var Docs fs.FS = rooted(docs, "docs")

// Migrations holds the database migrations, rooted so that "0101_history.sql" opens.
var Migrations fs.FS = rooted(migrations, "migrations")

func rooted(f embed.FS, dir string) fs.FS {
	sub, err := fs.Sub(f, dir)
	if err != nil {
		panic("assets: " + err.Error()) // only a malformed dir constant above can cause it
	}
	return sub
}
