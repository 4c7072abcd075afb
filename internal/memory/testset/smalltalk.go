package testset

// smallTalk are messages that no memory has to do with, by language: greetings,
// thanks, opinions asked for, orders, general knowledge and questions about code.
// They are written as people write to an assistant, not to be easy.
var smallTalk = map[string][]string{
	"en": {
		"hi", "Hello there!", "good morning", "good night, sleep well", "thanks", "Thank you so much, that helped!", "ok", "yes please", "no, never mind", "lol", "haha nice one",
		"What do you think?", "Are you sure?", "can you say that again, but shorter?", "go on", "stop", "That is wrong, try again.", "How are you today?", "what can you do?", "who made you?",
		"Tell me a joke.", "Why is the sky blue?", "How many litres are in a gallon?", "Translate 'butterfly' into Latin.", "What is the difference between TCP and UDP?",
		"How do I reverse a slice in Go?", "my SQL query returns duplicates, how do I fix the join?", "Explain what a monad is in two sentences.", "Write a regular expression that matches an email address.",
		"panic: runtime error: index out of range [3] with length 3", "Why does git say 'detached HEAD'?", "Make this paragraph sound more formal.", "What is the square root of 1764?", "Summarise the plot of Hamlet.",
		"Sounds good, let's do that.", "I don't understand.", "Which version of Python should a beginner learn?", "Give me a recipe for pancakes.",
	},
	"de": {
		"hi", "Hallo!", "Guten Morgen", "gute Nacht, bis morgen", "danke", "Vielen Dank, das hat geholfen!", "ok", "ja bitte", "nein, schon gut", "haha, der war gut", "Was meinst du?", "Bist du sicher?",
		"Kannst du das noch einmal kürzer sagen?", "weiter", "Das stimmt nicht, versuch es noch einmal.", "Wie geht es dir?", "Was kannst du alles?", "Erzähl mir einen Witz.", "Warum ist der Himmel blau?",
		"Wie viele Liter hat eine Gallone?", "Was heißt Schmetterling auf Latein?", "Was ist der Unterschied zwischen TCP und UDP?", "Wie kehre ich in Go einen Slice um?",
		"Meine SQL-Abfrage liefert doppelte Zeilen, woran liegt das?", "Erkläre mir Rekursion in zwei Sätzen.", "Schreib mir einen regulären Ausdruck für Postleitzahlen.", "Formuliere diesen Absatz höflicher.",
		"Was ist die Wurzel aus 1764?", "Worum geht es in Faust?", "Klingt gut, so machen wir es.", "Das verstehe ich nicht.", "Gib mir ein Rezept für Pfannkuchen.",
	},
	"es": {
		"hola", "¡Buenos días!", "buenas noches", "gracias", "¡Muchas gracias, me ayudó mucho!", "vale", "sí, por favor", "no, déjalo", "jaja, muy bueno", "¿Qué opinas?", "¿Estás seguro?",
		"¿Puedes decirlo otra vez, más corto?", "sigue", "Eso no es correcto, inténtalo de nuevo.", "¿Cómo estás?", "¿Qué sabes hacer?", "Cuéntame un chiste.", "¿Por qué el cielo es azul?",
		"¿Cuántos litros tiene un galón?", "¿Cómo se dice mariposa en latín?", "¿Qué diferencia hay entre TCP y UDP?", "¿Cómo invierto un slice en Go?", "Mi consulta SQL devuelve duplicados, ¿cómo lo arreglo?",
		"Explica la recursión en dos frases.", "Escribe una expresión regular para códigos postales.", "Haz que este párrafo suene más formal.", "¿Cuál es la raíz cuadrada de 1764?", "¿De qué trata el Quijote?",
		"Suena bien, hagámoslo así.", "No lo entiendo.", "Dame una receta de tortitas.",
	},
	"fr": {
		"salut", "Bonjour !", "bonne nuit", "merci", "Merci beaucoup, ça m'a bien aidé !", "d'accord", "oui, s'il te plaît", "non, laisse tomber", "haha, pas mal", "Qu'en penses-tu ?", "Tu es sûr ?",
		"Tu peux le redire en plus court ?", "continue", "C'est faux, essaie encore.", "Comment vas-tu ?", "Qu'est-ce que tu sais faire ?", "Raconte-moi une blague.", "Pourquoi le ciel est-il bleu ?",
		"Combien de litres y a-t-il dans un gallon ?", "Comment dit-on papillon en latin ?", "Quelle est la différence entre TCP et UDP ?", "Comment inverser une slice en Go ?",
		"Ma requête SQL renvoie des doublons, comment corriger ça ?", "Explique la récursivité en deux phrases.", "Écris une expression régulière pour les codes postaux.", "Rends ce paragraphe plus formel.",
		"Quelle est la racine carrée de 1764 ?", "De quoi parle Tartuffe ?", "Ça marche, faisons comme ça.", "Je ne comprends pas.", "Donne-moi une recette de crêpes.",
	},
	"zh": {
		"你好", "早上好", "晚安", "谢谢", "非常感谢，帮了大忙！", "好的", "是的，麻烦了", "不用了", "哈哈，真有意思", "你觉得呢？", "你确定吗？", "能再说一遍吗，简短一点？", "继续", "不对，再试一次。", "你最近好吗？", "你会做什么？",
		"讲个笑话吧。", "天空为什么是蓝色的？", "一加仑等于几升？", "蝴蝶用拉丁语怎么说？", "TCP和UDP有什么区别？", "Go语言里怎么反转切片？", "我的SQL查询返回重复的行，怎么改？", "用两句话解释递归。", "写一个匹配邮政编码的正则表达式。",
		"把这段话改得正式一点。", "1764的平方根是多少？", "红楼梦讲的是什么？", "听起来不错，就这么办。", "我没明白。", "给我一个煎饼的做法。",
	},
}
