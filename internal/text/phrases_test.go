package text

import (
	"testing"

	"reverie/internal/test/expect"
)

func TestIsStandingWish(t *testing.T) {
	for _, yes := range []string{
		"Always give me prices in euros.", "ok. From now on call me Sam", "I can't stand big hotels!", "Could you always add the date?", "I’d rather take the train",
		"Please don't suggest meat dishes.", "My favourite colour is green", "Ab jetzt bitte nur noch in Euro.", "Ich esse kein Fleisch", "Schlag mir nie Hotels vor",
		"Ne me propose jamais de viande", "Désormais, écris court.", "Je déteste les avions", "Nunca me sugieras carne", "No me gustan los hoteles grandes", "Dimmi sempre il prezzo",
		"Non sopporto gli alberghi grandi", "今後は丁寧に話してください", "私は肉は食べません", "以后每次都用欧元", "我不喜欢大酒店",
	} {
		expect.Equal(t, IsStandingWish(yes, Tokens(yes)), true, yes)
	}
	for _, no := range []string{
		"The meeting is at ten.", "Do I always pay in euros?", "We moved to Kiel in May.", "Wie war dein Tag?", "Hast du immer Zeit?", "Le train part à dix heures.", "El tren sale a las diez",
		"Il treno parte alle dieci", "会議は十時です", "会议十点开始", "",
	} {
		expect.Equal(t, IsStandingWish(no, Tokens(no)), false, no)
	}
}

func TestCollectsAll(t *testing.T) {
	for _, yes := range []string{
		"In what order did I visit them?", "How many books did I read?", "Can you summarise my move?", "List every doctor I saw", "Wie oft war ich beim Arzt?", "Fasse den Umzug zusammen",
		"Combien de livres ai-je lus ?", "¿En qué orden los visité?", "Quante volte sono stato dal medico?", "旅行を時系列で教えて", "请总结我的搬家",
	} {
		expect.Equal(t, CollectsAll(yes), true, yes)
	}
	for _, no := range []string{"When does the train leave?", "Where did I put the passport?", "Wann war ich beim Arzt?", "Où est mon passeport ?", "¿Dónde está?", "Dov'è?", "パスポートはどこ？", "我的护照在哪里？"} {
		expect.Equal(t, CollectsAll(no), false, no)
	}
}

func TestAsksForAnswer(t *testing.T) {
	for _, yes := range []string{
		"What did you recommend for dinner?", "Which name did you give me?", "What was your advice on the flat?", "What have you told me of Rome?", "Was hast du mir gestern zum Abendessen empfohlen?",
		"Was war dein Vorschlag?", "Que m'as-tu dit de Rome ?", "Qu'est-ce que tu m'as conseillé ?", "¿Qué me recomendaste?", "¿Cuál fue tu consejo?", "Cosa mi hai consigliato?", "何を勧めてくれましたか", "你之前推荐了什么?",
	} {
		expect.Equal(t, AsksForAnswer(yes), true, yes)
	}
	for _, no := range []string{"What did Peter say?", "What did I tell you?", "Where did I go?", "Was hat Anna gesagt?", "Qu'a dit Anna ?", "¿Qué dijo Ana?", "Che cosa ha detto Anna?", "父は何と言った?", "他说了什么?"} {
		expect.Equal(t, AsksForAnswer(no), false, no)
	}
}
