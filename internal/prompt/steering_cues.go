package prompt

import "reverie/internal/skill"

// What people and models say, in the languages of the seeds. It is matched as the
// triggers of skills are: whole words, in any case. A cue too many costs a line that
// does not fit; one too few, a line that is not there.

// asksToKeep reports whether a message asks for something to be kept.
func asksToKeep(text string) bool {
	return skill.Said(text, asksKeeping) != "" && skill.Said(text, asksMemory) == ""
}

var asksKeeping = []string{
	"remember that", "remember this", "remember my", "remember:", "please remember", "don't forget", "don’t forget", "do not forget", "keep in mind", "make a note", "remind me", "from now on",
	"merk dir", "merke dir", "merken sie sich", "vergiss nicht", "vergessen sie nicht", "denk daran", "denk dran", "erinnere mich", "erinnern sie mich", "notiere", "ab jetzt", "von nun an",
	"recuerda que", "recuérdame", "acuérdate", "no olvides", "no te olvides", "ten en cuenta", "apunta", "a partir de ahora",
	"souviens-toi", "rappelle-toi", "rappelle-moi", "rappelez-moi", "retiens", "n'oublie pas", "n’oublie pas", "n'oubliez pas", "n’oubliez pas", "à partir de maintenant", "désormais",
	"ricorda che", "ricordati", "ricordami", "non dimenticare", "tieni a mente", "segnati", "d'ora in poi", "d’ora in poi",
	"覚えて", "忘れないで", "リマインド", "今後は",
	"记住", "記住", "记一下", "别忘", "不要忘", "提醒我", "提醒一下我", "从现在起",
}

// asksMemory is what a question about memories says in such words.
var asksMemory = []string{"you remember that", "you remember this", "you remember my", "覚えてい", "覚えてる", "记住了吗", "記住了嗎"}

// personal is what people say when they speak of themselves.
var personal = []string{
	"my", "i am", "i'm", "i’m", "i like", "i prefer", "i live", "i have",
	"mein", "meine", "meinen", "meinem", "meiner", "ich bin", "ich habe", "ich mag", "ich wohne",
	"mi", "mis", "soy", "tengo", "me gusta", "vivo",
	"mon", "mes", "je suis", "j'ai", "j’ai", "j'aime", "j’aime", "j'habite", "j’habite",
	"mio", "mia", "miei", "mie", "sono", "mi piace", "abito",
	"私", "僕", "俺", "うちの",
	"我的", "我是", "我喜欢", "我住", "我有",
}

// promises is how answers say that something was kept.
var promises = []string{
	"i'll remember", "i’ll remember", "i will remember", "i've noted", "i’ve noted", "i have noted", "i've saved", "i’ve saved", "i have saved", "i've added", "i’ve added", "i have added",
	"i'll keep that in mind", "i’ll keep that in mind", "i'll make a note", "i’ll make a note", "i'll remind you", "i’ll remind you", "i will remind you",
	"merke ich mir", "ich merke mir", "ich werde mir merken", "habe ich mir gemerkt", "ich habe mir gemerkt", "ist notiert", "habe ich notiert", "habe ich gespeichert", "ich erinnere dich", "ich erinnere sie",
	"lo recordaré", "recordaré que", "lo tendré en cuenta", "he anotado", "lo he guardado", "te recordaré",
	"je m'en souviendrai", "je m’en souviendrai", "c'est noté", "c’est noté", "j'ai noté", "j’ai noté", "j'ai enregistré", "j’ai enregistré", "je te rappellerai", "je vous rappellerai",
	"me lo ricorderò", "me ne ricorderò", "ho annotato", "ho salvato", "lo terrò a mente", "ti ricorderò",
	"覚えておきます", "覚えました", "メモしました", "記録しました", "リマインドします",
	"我会记住", "我记住了", "已记住", "我记下了", "已经记下", "我会提醒你",
}
