// Package skill manages the skill files: know-how in Markdown whose first line says when to use it.
//
// The folder of a skill says who may read it. Nothing in the file changes that:
//
//	data/skills/NAME.md                everyone; written by hand, or shared by an owner
//	data/skills/users/PERSON/NAME.md   one person, in direct chats
//	data/skills/rooms/ROOM/NAME.md     the members of a room
//
// PERSON and ROOM are Matrix IDs as file names (store.FileName). Each NAME.md may be a folder NAME
// with a SKILL.md instead. The model writes only into the folder of the place where it answers, and
// changes only skills of the same person there.
//
// Two keys of the front matter record the origin: "integrity" (owner, user, guest or foreign) and
// "written_by" (a Matrix ID). The program writes both in front of the model's text, which therefore
// cannot contain front matter. A file without them was written by hand and has the integrity of an
// owner. Invalid or duplicate keys, or keys outside of front matter, make the skill foreign.
//
// # Published skills
//
// A folder as published for agentskills.io works unchanged: SKILL.md with the fields name and
// description, and beside it references, scripts and assets, which the model reads with read_file.
// Check lists what is wrong with one. Nothing runs scripts.
//
// Import copies a folder from outside, with a file ".imported" in it. Until an owner has read all of
// it (Trust), it is foreign: only its name is in the list of skills, its triggers do not count, and
// text that is read from it lowers the integrity of the conversation. The file then holds a hash of the
// folder, so a folder that changed is foreign again. It is in the folder because folders are renamed.
//
// The field allowed-tools has no effect. It may only narrow what a skill can do, and it has nothing to
// narrow: a skill permits nothing, package tool decides by the integrity of all texts in the
// prompt. Its names are those of other programs; hiding all other tools from the model would take
// away read_file, which skills need. It would also let a text switch off tools for a whole conversation.
package skill
