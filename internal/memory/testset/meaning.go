package testset

// Meanings are facts, and a question about each that has no word of it: only who
// knows what words mean finds them.
var Meanings = []struct{ Fact, Question string }{
	{"Anna is allergic to peanuts", "which foods can't she eat?"},
	{"The car is in the garage for repairs", "did the mechanic fix my vehicle?"},
	{"My sister gave birth to twins", "how many babies did she have?"},
	{"He plays the violin in an orchestra", "which musical instrument is his hobby?"},
	{"We spent our holiday in Portugal", "where did you travel on vacation?"},
	{"Grandpa died of cancer", "what illness killed my grandfather?"},
	{"I quit smoking", "have you given up cigarettes?"},
	{"The flat costs 900 euros a month", "how much rent must I pay for my apartment?"},
	{"She works as a nurse at St. Mary's", "what is her job in the hospital?"},
	{"Our dog ran away", "which pet got lost?"},
	{"The dentist is on Elm Street", "where can I get my teeth checked?"},
	{"I weigh 80 kilos", "how heavy am I?"},
	{"Tom bought a new laptop", "which computer does he own?"},
	{"My favourite colour is green", "what shade do you like best?"},
	{"The wedding is in June", "when are they getting married?"},
	{"I am afraid of spiders", "what scares you, insects?"},
	{"Mum drinks her coffee black", "does my mother want milk and sugar?"},
	{"The kids go to school by bus", "how do the children get to class?"},
	{"I speak French and a little Dutch", "which foreign languages do you know?"},
	{"He broke his leg skiing", "how did the accident injure him?"},
	{"We are vegetarians", "do you eat meat?"},
	{"My salary is 4,000 a month", "how much money do I earn?"},
	{"The plane leaves at seven", "what time is our flight?"},
	{"She lost her purse on the train", "where did the wallet disappear?"},
}
