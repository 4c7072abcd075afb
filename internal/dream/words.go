package dream

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// The words that tell how two texts differ, in English and German, and where it is
// cheap in the other languages that the program greets in.

func anyOf(list string) *regexp.Regexp {
	return regexp.MustCompile(`(?:^|[^\p{L}\p{N}'])(?:` + list + `)(?:$|[^\p{L}\p{N}'])`)
}

var (
	articles   = wordSet(`a an the der die das den dem des ein eine einen einem einer eines`)
	caseless   = wordSet(`a an the die das ein eine`) // of these, those that do not say by themselves who does it to whom
	shortForms = strings.NewReplacer("n't", " not", "i'm ", "i am ", "he's ", "he is ", "she's ", "she is ", "it's ", "it is ", "there's ", "there is ", "’s", "'s", "’", "'")
	notePrefix = regexp.MustCompile(`^(?:(?:please )?(?:remember|note|fyi|by the way|don't forget|merke dir|merk dir|notiz|übrigens|bitte merken)(?: that| dass)? )+`)

	// A text that has an odd number of them says that something is not so.
	// What denies in two words, as Romance languages do, counts once.
	negation = anyOf(`(?:ne |n')\p{L}+(?: \p{L}+)? (?:pas|plus|jamais|rien|personne|guère|aucune?)|no(?: \p{L}+){1,3} (?:nunca|jamás|nada|nadie|ning[uú]n\p{L}*|tampoco)|` +
		`não(?: \p{L}+){1,3} (?:nunca|nada|ninguém|nenhuma?)|non(?: \p{L}+){1,3} (?:mai|niente|nulla|nessun\p{L}*|neanche)|ya no|ne plus|не(?: \p{L}+){1,2} (?:никогда|ничего|никого)|` +
		`not|no|never|none|nobody|nothing|without|cannot|neither|nor|hardly|stopped|quit|gave up|dislikes?|hates?|hated|detests?|` +
		`[a-z]+n't|no longer|not any ?more|` +
		`nicht|kein|keine|keinen|keinem|keiner|keines|nie|niemals|niemand|nichts|ohne|kaum|hasst|hasse|aufgehört|` +
		`keinerlei|niemanden|niemandem|nirgends|weder|pas|jamais|sans|aucune?|rien|nunca|jamás|sin|ningún|ninguna|ninguno|nadie|nada|tampoco|não|ninguém|nenhuma?|deixou de|non|senza|niente|nulla|nessun[oa]?|не|нет|без|никогда|никто|ничего`)
	spaceless = regexp.MustCompile(`[不没沒无無]|ない|ません|なし|なくな|やめ(?:た|まし)|停止`)

	// What may be, was once, or depends on something.
	hedges = anyOf(`or|if|unless|except|but|only|until|till|maybe|perhaps|might|may|could|would|should|seems?|probably|possibly|almost|nearly|think|thinks|thought|believes?|` +
		`says|said|formerly|once|used to|ex|when|while|before|after|instead|allegedly|suspected|suspicion|rumou?r|rumou?red|uncertain|questionable|disputed|supposedly|supposed|reportedly|apparently|presumably|unconfirmed|unclear|doubtful|doubts?|doubted|excepted|excepting|excluding|provided|apart from|other than|aside from|as long as|claims? that|wants?|wanted|plans?|planned|hopes?|wishes|considers?|considering|used|anymore|rather|` +
		`oder|wenn|falls|außer|aber|nur|bis|vielleicht|eventuell|möglicherweise|könnte|würde|sollte|scheint|wohl|wahrscheinlich|fast|beinahe|glaubt|meint|sagt|früher|` +
		`ehemals|einst|bevor|nachdem|angeblich|verdacht|gerücht|vermutung|unsicher|fraglich|strittig|vermutlich|anscheinend|offenbar|scheinbar|mutmaßlich|womöglich|sofern|solange|vorausgesetzt|es sei denn|ausgenommen|abgesehen von|mit ausnahme|heißt es|zweifelt|bezweifelt|unklar|unbestätigt|vormals|statt|sondern|will|möchte|wollte|plant|hofft|überlegt|damals|während|als ob|` +
		`soupçon|rumeur|incertaine?|autrefois|jadis|jusqu'(?:à|au|aux|en|ici)|hormis|excepté|à part|à moins|pourvu|tant que|paraît-il|semble|apparemment|probablement|éventuellement|prétendument|soi-disant|pourrait|devrait|lorsque|quand|avant|après|` +
		`sospecha|rumor|dudos[oa]|incierto|excepto|salvo|hasta|a menos|siempre que|mientras|cuando|antes|después|antiguamente|quizá|tal vez|probablemente|posiblemente|supuestamente|aparentemente|podría|debería|parece|dicen|solamente|únicamente|` +
		`sospetto|incert[oa]|presunt[oa]|tranne|eccetto|fino (?:a|al|alla|allo|ad)|finché|a meno|purché|quando|mentre|prima|dopo|una volta|un tempo|in passato|anzi|però|soltanto|magari|probabilmente|presumibilmente|apparentemente|potrebbe|dovrebbe|sembra|pare|dicono|` +
		`ou|s'il|si (?:je|tu|elle|on|nous|vous|no|non|il|la|le|hay|puede|quiere|può|vuole)|sauf|mais|seulement|peut-être|o|pero|sólo|solo|quizás|forse|ma|se (?:non|il|la|può|vuole|fa|è)|mas|só|talvez|или|если|но|только|возможно`)
	hedgesWide = regexp.MustCompile(`かもしれ|たぶん|多分|おそらく|らしい|だろう|でしょう|もし|以外|を除|未定|未確認|予定|以前|かつて|可能|也许|或许|大概|据说|听说|好像|除了|除非|如果|要是|未确认|待定|打算|曾经|直到`)

	// What says that something is not as it was. Also adds, and changes nothing.
	changes = anyOf(`now|no longer|any ?more|currently|recently|lately|instead|moved|switched|changed|became|since|new|latest|updated|these days|` +
		`from (?:now|today|next) ?(?:on)?|as of|this (?:week|month|year|spring|summer|autumn|winter)|last (?:week|month|year)|got|gets|given|replaced|sold|bought|left|quit|joined|started|stopped|gave up|` +
		`promoted|retired|fired|hired|divorced|remarried|separated|broke up|rose|fell|raised|lowered|increased|decreased|grew|extended|postponed|cancelled|renamed|returned|turned|transferred|converted|corrected|actually|` +
		`jetzt|nun|nicht mehr|neuerdings|inzwischen|mittlerweile|seit|gewechselt|umgezogen|umgestellt|neu|neue|neuer|neues|neuen|aktuell|stattdessen|` +
		`ab (?:jetzt|sofort|heute|morgen)|künftig|diese[ns]? (?:woche|monat|jahr|frühjahr|sommer|herbst|winter)|letzte[ns]? (?:woche|monat|jahr)|geworden|bekommen|ersetzt|verkauft|gekauft|verlassen|gekündigt|angefangen|begonnen|aufgehört|aufgegeben|` +
		`befördert|entlassen|geschieden|getrennt|geheiratet|gezogen|gestiegen|gesunken|erhöht|gesenkt|verlängert|verlegt|verschoben|abgesagt|umbenannt|zurückgekehrt|geändert|korrigiert|eigentlich|` +
		`désormais|maintenant|dorénavant|récemment|depuis|déménagé|déménage|changé|quitté|vendu|acheté|remplacé|nouveau|nouvel|nouvelle|devenue?|installée?|marié|divorcé|arrêté|commencé|n'est plus|(?:ne |n')\p{L}+ plus|passée? (?:à|de)|` +
		`ahora|ya no|actualmente|recientemente|últimamente|desde|mud[oó]|mudado|cambi[oó]|cambiado|dej[oó]|dejado|vend[ií][oó]|vendido|compr[oó]|comprado|nuevo|nueva|empez[oó]|casado|divorciado|subi[oó]|baj[oó]|` +
		`adesso|ora|ormai|attualmente|recentemente|non \p{L}+ più|trasferit[oa]|cambiat[oa]|lasciat[oa]|vendut[oa]|comprat[oa]|nuov[oa]|diventat[oa]|sposat[oa]|divorziat[oa]|iniziato|smesso|salit[oa]|` +
		`теперь|сейчас|недавно|больше не|переехал\p{L}*|сменил\p{L}*|новый|новая|новое|стал\p{L}*`)
	changesWide = regexp.MustCompile(`现在|現在|最近|目前|搬|换|換|改|新的|不再|已经|已經|辞职|辭職|离婚|離婚|跳槽|迁到|遷到|推迟|推遲|调到|調到|涨到|漲到|降到|起在|其实|其實|更正|记错|記錯|` +
		`引っ越|移[っりる行]|異動|変え|変わ|変更|替え|替わ|辞め|やめ|新しい|転職|延期|今[はもで]|に(?:なった|なりまし)|なくな|実は|訂正|間違え`)

	// What says that something is so beside what was said before.
	adds = anyOf(`also|too|as well|besides|additionally|in addition|auch|außerdem|zusätzlich|daneben|nebenbei|ebenfalls|obendrein|aussi|également|en plus|en outre|también|además|asimismo|anche|inoltre|também|além disso|тоже|также`)

	selfWords = anyOf(`i|i'm|i've|i'd|i'll|me|my|mine|myself|user|user's|ich|mir|mich|mein|meine|meinen|meinem|meiner|meines|nutzer|benutzer|je|j'ai|moi|mon|ma|mes|yo|mi|mis|io|mio|я|мой|моя|мне|我|私`)

	// What stands around that which was before.
	froms = wordSet(`from von aus de da dal dalla desde di из с`)
	tos   = wordSet(`to nach à a ad в`)

	// Two things at once.
	both      = anyOf(`and|as well as|und|sowie|sowohl|et|y|e|и`)
	gradeA    = regexp.MustCompile(`[^.!?:;\s]["“„(]?\s+["“„(]?A(?:[^\p{L}\p{N}']|$)`) // vitamin A, block A: no article
	namely    = strings.NewReplacer(" und zwar ", " ", " and that is ", " ")
	bothWide  = regexp.MustCompile(`另外|还有|還有|以及|并且|並且|而且|それと|そして|それから|および|ならびに`)
	couples   = regexp.MustCompile(` (?:and|und) \p{L}+ (?:are|sind) (?:married|engaged|a couple|verheiratet|verlobt|ein paar)\b`)
	shortened = regexp.MustCompile(`(?i)(\b(?:dr|mr|mrs|ms|mx|prof|st|jr|sr|jun|sen|rev|capt|sgt|lt|gen|lic|arq|dra|fr|hr|hrn|frl|fam|med|mme|mlle|srta|sig|dott|avv|zi|abt|std|tgl|tägl|evtl|ggf|inkl|zzgl|vgl|approx|dept|incl|excl|feb|apr|aug|sept|okt|oct|nov|dez|dec|ca|bzw|hl|tel|geb|ext|av|blvd|apt|fl|sra?|núm|\p{L}*(?:no|nr|str)|[a-z])|\b[0-3]?\d)\.( (?:\p{L}|\d))`)
	// What says no more than that something came to an end, as the first of two things.
	endings = anyOf(`left|quit|quits|sold|resigned|retired|retrained|moved house|moved out|gave up|given up|split up|broke up|broken up|stepped down|dropped|ditched|traded in|got rid of|packed (?:\p{L}+ )?up|moved (?:away|on|off)|walked out|checked out|cancelled|changed|switched|swapped|outgr[eo]wn?|handed (?:in|over|back)|given back|gave back|put off|postponed|rescheduled|separated from|divorced|` +
		`verlassen|gekündigt|verkauft|getrennt|gewechselt|aufgehört|aufgegeben|abgegeben|umgezogen|weggezogen|ausgezogen|abgeschafft|hingeworfen|umgeschult|geändert|ausgetreten|verschoben|vertagt|verlegt|getauscht|eingetauscht|umgestiegen|zurückgegeben|verschenkt|` +
		`quitté|vendu|démissionné|changé|déménagé|séparée?|divorcé|reconvertie?|arrêté|abandonné|résilié|reportée?|rendue?|échangée?|` +
		`vendi[oó]|vendido|dej[oó]|dejado|cambi[oó]|cambiado|renunci[oó]|abandon[oó]|abandonado|separ[oó]|separado|mud[oó]|mudado|aplaz[oó]|aplazado|devolvi[oó]|devuelto|` +
		`vendeu|vendido|deixou|largou|trocou|mudou|mudou-se|separou-se|demitiu-se|abandonou|` +
		`lasciat[oa]|vendut[oa]|cambiat[oa]|smesso|abbandonat[oa]|separat[oa]|trasferit[oa]|rinviat[oa]|rimandat[oa]|spostat[oa]|restituit[oa]|scambiat[oa]|` +
		`продал\p{L}*|бросил\p{L}*|сменил\p{L}*|уш[её]л|ушла|уволил\p{L}*|расстал\p{L}*|развел\p{L}*|переехал\p{L}*`)
	sentences = regexp.MustCompile(`[.!?;。！？；]\s+\S|[;；。]\S`)

	// What can be left out of a text and it says the same of the same.
	asides = wordSet(`now currently recently lately anymore longer instead again still already since new latest updated actually really also just today finally meanwhile always usually
changed change switched stopped quit become became got get gone time times day days week weeks month months year years last ago these
jetzt nun neuerdings inzwischen mittlerweile seit neue neuer neues neuen neu aktuell stattdessen wieder noch schon eigentlich wirklich auch heute endlich immer meist meistens mehr
gewechselt umgestellt geändert aufgehört geworden tag tage tagen woche wochen monat monate monaten jahr jahre jahren letzten letzter letztes letzte
not never none without cannot no nicht kein keine keinen nie niemals ohne nichts não nunca`)
)

// alike are words that mean the same when it is asked whether something is so or not.
var alike = alikes(`like:love,lov,enjoy,likes,prefer,hate,hat,dislik,dislike,detest,ador mögen:mag,liebt,lieb,lieben,hasst,hass,hassen,gern
live:resid,reside,dwell work:employ,employed call:name,named car:vehicl,auto phone:telephon,telephone,mobil,mobile,cellphon cell:cellphon`)

func alikes(list string) map[string]string {
	out := map[string]string{}
	for entry := range strings.FieldsSeq(list) {
		base, others, _ := strings.Cut(entry, ":")
		for o := range strings.SplitSeq(others, ",") {
			out[o] = base
		}
	}
	return out
}

func likeness(stem string) string {
	if base := alike[stem]; base != "" {
		return base
	}
	return stem
}

// negations counts in low, lower-case with spaces around, what turns it to the contrary.
func negations(low string) int {
	n := len(spaceless.FindAllString(low, -1))
	for rest := low; ; n++ {
		at := negation.FindStringIndex(rest)
		if at == nil {
			return n
		}
		rest = " " + strings.TrimLeft(rest[at[1]-1:], " ")
	}
}

// unshorten takes away the full stops of abbreviations, also of several in a row (Dr. med. Roth).
func unshorten(text string) string {
	for {
		next := shortened.ReplaceAllString(text, "$1$2")
		if next == text {
			return text
		}
		text = next
	}
}

// isCompound reports whether text says more than one thing.
func isCompound(text, low string) bool {
	return both.MatchString(couples.ReplaceAllString(namely.Replace(low), " ")) || bothWide.MatchString(low) || sentences.MatchString(unshorten(text))
}

// isTurn reports whether text, which says two things, first says what came to an end and
// then what is so instead, of the same person: nobody is named a second time.
func isTurn(text, low string) bool {
	at := both.FindAllStringIndex(low, -1)
	if len(at) != 1 || sentences.MatchString(unshorten(text)) {
		return false
	}
	first, rest := low[:at[0][0]+1], strings.Fields(low[at[0][1]-1:])
	if len(rest) == 0 || !endings.MatchString(first) || endings.MatchString(low[at[0][1]-1:]) {
		return false
	}
	words := slices.DeleteFunc(strings.Fields(first), func(w string) bool { return articles[w] })
	all := strings.Fields(text)
	next := []rune(all[len(all)-len(rest)])[0]
	return len(words) > 0 && !unicode.IsUpper(next) && !slices.Contains(rest, words[0]) && !slices.Contains(rest, words[0]+"'s")
}
