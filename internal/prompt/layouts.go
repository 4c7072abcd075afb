package prompt

// Other orders than stable's, each a design of its own that people know from
// elsewhere. They rebuild the system text for every request.

// perToken is how many characters of English make a token, for caps that were
// thought of in tokens.
const perToken = 4

// classic is one document of six parts, the clock near its top.
var classic = []place{
	{"core", Prefix, 0, Must, 32_000, Rebuilt},
	{"clock", Prefix, 10, Must, 100, Rebuilt},
	{"memories", Prefix, 20, 80, 10_000, Rebuilt},
	{"recalled", Prefix, 21, 72, 8_000, Rebuilt},
	{"tasks", Prefix, 30, 65, 5_000, Rebuilt},
	{"summary", Prefix, 40, 90, 8_000, Rebuilt},
	{"skills", Prefix, 50, 60, 2_000, Rebuilt},
	{"seed", Tail, 0, 90, 2_000, Once},
}

// tiered begins with the template for the mode and the model's tier; goals are
// never cut.
var tiered = []place{
	{"template", Prefix, 0, Must, 1_500 * perToken, Rebuilt},
	{"mandates", Prefix, 10, Must, 1_000 * perToken, Rebuilt},
	{"goal", Prefix, 20, Must, 4_000, Rebuilt},
	{"steps", Prefix, 21, Must, 4_000, Rebuilt},
	{"skills", Prefix, 30, 60, 2_000, Rebuilt},
	{"active_skills", Prefix, 31, 55, 16_000, Rebuilt},
	{"tools", Prefix, 40, 40, 4_000, Rebuilt},
	{"sanity", Prefix, 50, 30, 200 * perToken, Rebuilt},
	{"instructions", Prefix, 60, 20, 1_000 * perToken, Rebuilt},
	{"summary", Prefix, 70, 90, 8_000, Rebuilt}, // next to the history, which it is the older part of
	{"seed", Tail, 0, 90, 2_000, Once},
}

// split has a static part, who the assistant and the person are first, and at its
// end a suffix that is new for every request: time, model, task and summary.
var split = []place{
	{"soul", Prefix, 0, Must, 8_000, Rebuilt},
	{"user", Prefix, 1, 90, 4_000, Rebuilt},
	{"preferences", Prefix, 2, 90, 4_000, Rebuilt},
	{"memories", Prefix, 3, 80, 10_000, Rebuilt},
	{"identity", Prefix, 10, Must, 2_000, Rebuilt},
	{"mandates", Prefix, 11, Must, 4_000, Rebuilt},
	{"safety", Prefix, 12, Must, 4_000, Rebuilt},
	{"base", Prefix, 13, Must, 16_000, Rebuilt},
	{"guides", Prefix, 20, 85, 8_000, Rebuilt},
	{"tools", Prefix, 21, 85, 4_000, Rebuilt},
	{"skill_hints", Prefix, 30, 30, 1_200, Rebuilt},
	{"active_skills", Prefix, 31, 55, 16_000, Rebuilt},
	{"skills", Prefix, 32, 60, 2_000, Rebuilt},
	{"apps", Prefix, 40, 50, 2_000, Rebuilt},
	{"models", Prefix, 41, 20, 600, Rebuilt},
	{"reminder", Prefix, 42, 40, 2_000, Rebuilt},
	// the suffix
	{"clock", Prefix, 50, Must, 100, Rebuilt},
	{"runtime", Prefix, 51, 30, 400, Rebuilt},
	{"pin", Prefix, 52, 85, 1_000, Rebuilt},
	{"tasks", Prefix, 53, 65, 5_000, Rebuilt},
	{"summary", Prefix, 54, 90, 4_000 * perToken, Rebuilt},
	{"recalled", Prefix, 55, 72, 8_000, Rebuilt},
	{"seed", Tail, 0, 90, 2_000, Once},
	{"steering", Tail, 80, 95, 1_000, NewLines},
}

// layered numbers its layers; a lower number stands earlier and survives longer.
var layered = []place{
	{"identity", Prefix, 0, Must, 500 * perToken, Rebuilt},
	{"tools", Prefix, 1, 100, 500 * perToken, Rebuilt},
	{"mandates", Prefix, 2, Must, 500 * perToken, Rebuilt},
	{"safety", Prefix, 5, Must, 500 * perToken, Rebuilt},
	{"instructions", Prefix, 10, Must, 1_000 * perToken, Rebuilt},
	{"thinking", Prefix, 12, 88, 200 * perToken, Rebuilt},
	{"soul", Prefix, 15, 85, 1_000 * perToken, Rebuilt},
	{"agents", Prefix, 16, 85, 1_000 * perToken, Rebuilt},
	{"toolnotes", Prefix, 17, 85, 1_000 * perToken, Rebuilt},
	{"commands", Prefix, 18, 85, 1_000 * perToken, Rebuilt},
	{"base", Prefix, 19, 82, 2_000 * perToken, Rebuilt},
	{"guides", Prefix, 20, 82, 2_000 * perToken, Rebuilt},
	{"user", Prefix, 25, 80, 1_000 * perToken, Rebuilt},
	{"skills", Prefix, 40, 60, 1_000 * perToken, Rebuilt},
	{"active_skills", Prefix, 41, 60, 4_000 * perToken, Rebuilt},
	{"memories", Prefix, 50, 50, 2_000 * perToken, Rebuilt},
	{"recalled", Prefix, 51, 48, 2_000 * perToken, Rebuilt},
	{"tasks", Prefix, 55, 45, 1_000 * perToken, Rebuilt},
	{"clock", Prefix, 60, 40, 200 * perToken, Rebuilt},
	{"summary", Prefix, 70, 30, 10_000 * perToken, Rebuilt},
	{"runtime", Prefix, 80, 20, 200 * perToken, Rebuilt},
	{"seed", Tail, 0, 90, 2_000, Once},
	{"steering", Tail, 80, 95, 1_000, NewLines},
}

// phased has sticky constraints first, then the phases task, memory and tools;
// what a phase is worth is its keep.
var phased = []place{
	// constraint, sticky
	{"identity", Prefix, 100, Must, 4_000, Rebuilt},
	{"agent", Prefix, 101, Must, 8_000, Rebuilt},
	{"safety", Prefix, 102, Must, 4_000, Rebuilt},
	{"clock", Prefix, 103, Must, 100, Rebuilt},
	{"runtime", Prefix, 104, Must, 400, Rebuilt},
	{"preferences", Prefix, 105, Must, 8_000, Rebuilt},
	// task
	{"goal", Prefix, 200, 95, 4_000, Rebuilt},
	{"steps", Prefix, 201, 95, 4_000, Rebuilt},
	{"pin", Prefix, 202, 90, 1_000, Rebuilt},
	{"tasks", Prefix, 203, 85, 5_000, Rebuilt},
	// memory
	{"memories", Prefix, 300, 70, 10_000, Rebuilt},
	{"workspace", Prefix, 301, 40, 2_000, Rebuilt},
	{"summary", Prefix, 302, 60, 8_000, Rebuilt},
	{"footprint", Prefix, 303, 35, 2_000, Rebuilt},
	{"files", Prefix, 304, 30, 2_000, Rebuilt},
	{"recalled", Prefix, 305, 65, 8_000, Rebuilt},
	// tools
	{"base", Prefix, 400, 80, 16_000, Rebuilt},
	{"guides", Prefix, 401, 75, 8_000, Rebuilt},
	{"tools", Prefix, 402, 65, 4_000, Rebuilt},
	{"skills", Prefix, 403, 50, 2_000, Rebuilt},
	{"seed", Tail, 0, 90, 2_000, Once},
}
