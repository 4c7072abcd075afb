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
// A folder as published for agentskills.io works unchanged. Check lists what is wrong with one. A script
// runs only as a command of the tool shell, on a copy in the work folder that an owner approved by its hash.
//
// Import copies a folder from outside and puts a file ".imported" into it. Until an owner has read all of
// it (Review), it is foreign: the prompt has only its name, its triggers do not count, and reading it
// makes a conversation foreign. The file then holds a hash of the folder, so a folder that changed is
// foreign again. It is in the folder, because folders are renamed.
//
// The field allowed-tools has no effect. It may only narrow, and there is nothing to narrow: a skill
// permits nothing, package tool decides by the integrity of all texts in the prompt. It names tools of
// other programs, so hiding all others would take away read_file, which skills need.
package skill
