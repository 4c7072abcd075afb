package memory

import "strings"

// The words that say little. They are left out of questions, never of texts:
// they tell a text's language, and a text must be found by whatever it holds.
var stopWords = [languages]string{
	en: `a about above after again against all also am an and any anybody anyone anything are aren't as at be because been before being
below between both but by can can't cannot could couldn't did didn't do does doesn't doing don't down during each ever everyone few for from
further get gets getting got had hadn't has hasn't have haven't having he he'd he'll he's her here here's hers herself hi hey him himself his how how's i
i'd i'll i'm i've if in into is isn't it it's its itself just kind let's like many may me might more most much must my myself no nor not now
of off oh ok okay on once only or other ought our ours ourselves out over own please quite really same say says said shall she she'd she'll she's should
shouldn't so some someone something such tell than that that's the their theirs them themselves then there there's these they they'd they'll
they're they've thing things this those through to too under until up us very was wasn't we we'd we'll we're we've well were weren't what what's
when when's where where's which while who who's whom whose why why's will with won't would wouldn't yeah yes yet you you'd you'll
you're you've your yours yourself yourselves know remember mention mentioned`,
	de: `aber alle allem allen aller alles als also am an ander andere anderem anderen anderer anderes auch auf aus bei beim bin bis bist bitte da
dadurch daher damit dann daran darauf darf darum das dass dazu dein deine deinem deinen deiner deines dem den denen denn der deren des dessen dich
die dies diese diesem diesen dieser dieses dir doch dort du durch eben ein eine einem einen einer eines er es etwas euch euer eure eurem
euren für gar gegen gerade gern gibt habe haben habt hast hat hatte hatten hätte hätten hi hier hin ich ihm ihn ihnen ihr ihre ihrem ihren ihrer ihres im in
ins ist ja je jede jedem jeden jeder jedes jemand jetzt kann kannst kein keine keinem keinen keiner können konnte könnte mal man manche mehr mein meine
meinem meinen meiner meines mich mir mit muss müssen musste nach nein nicht nichts noch nun nur ob oder ohne schon sehr sein seine seinem seinen
seiner seines seit sich sie sind so sogar soll sollen sollte sondern sonst über um und uns unser unsere unserem unseren unserer unter viel vom von vor
wann war waren warst warum was weg weil welche welchem welchen welcher welches wem wen wenn wer werde werden wessen wie wieder will wir wird wirst wo
woher wohin wollen wollte worden worüber wurde wurden würde zu zum zur zwar zwischen sag sagte weißt`,
	es: `a al algo alguien algún alguna algunas algunos ante antes aquel aquella aquí así aún aunque bien cada casi como cómo con contra cual cuál cuáles
cualquier cuando cuándo cuánto cuánta cuántos cuántas cuya cuyo de del desde después donde dónde dos durante e el él ella ellas ellos en entonces entre era eran eras es esa
esas ese eso esos esta está estaba estaban están estar estas este esto estos estoy estuvo fue fueron fui ha había habían han hasta hay he hemos hola hizo la las le
les lo los más me mi mí mis mismo mucho muchos muy nada ni no nos nosotros nuestra nuestras nuestro nuestros o os otra otras otro otros para pero
poco por porque pues puede pueden qué que quién quien quiénes quienes se sea según ser será si sí sido siempre sin sobre son soy su sus también tampoco tan tanto te tenía tiene tienen tengo ti
tienes todo toda todos todas tu tú tus un una unas uno unos usted ustedes va vosotros y ya yo dijo dice sabes`,
	fr: `à ai aie ainsi alors après as au aucun aucune aujourd'hui aussi autre autres aux avait avaient avant avec avez avoir avons bien c ça ce ceci cela celle celles celui
ces cet cette ceux chaque chez comme comment d dans de déjà depuis des dit donc dont du elle elles en encore entre es est est-ce et étaient était été être eu eux fait
faut font il ils j je jusqu l la là laquelle le lequel les lesquels leur leurs lui m ma mais me même mes moi moins mon n ne ni non nos notre nous on ont
ou où par parce pas pendant peu peut peux plus pour pourquoi pouvez puis qu qu'est quand que quel quelle quelles quels quelqu qui quoi s sa sans se sera ses si
sien son sont suis sur t ta tandis te tes toi ton toujours tous tout toute toutes très trop tu un une va vers veux vont vos votre vous y a
c'est d'un d'une j'ai qu'il qu'elle qu'est-ce l'on n'est n'a s'est`,
	it: `a abbia abbiamo ad agli ai al alla alle allo altra altre altri altro anche ancora avere aveva avevano bene c che chi ci ciao cioè col come con contro cosa così cui
da dagli dai dal dalla dalle dallo degli dei del della delle dello dentro di dopo dove dov'è e è ed era erano ero essere fa fra fu già gli ha hai hanno ho i il in
io la le lei li lo loro lui ma me mentre mi mia mie miei mio molto molti ne negli nei nel nella nelle nello no noi non nostra nostri nostro o ogni per perché però più
poi quale quali qualche quando quanta quante quanti quanto quel quella quelle quelli quello quest questa queste questi questo qui sarà se sei sempre senza si sì sia siamo
siete solo sono sopra sta stata stati stato su sua sue sugli sui sul sulla sulle suo suoi tra tu tua tue tuo tuoi tutta tutte tutti tutto un una uno va vi voi
c'è dell l'ha com'è cos'è qual`,
	pt: `a à ah ai ainda algo alguém algum alguma ao aos apenas após aquela aquele aquilo as às assim até com como contra cada da daquele das de dela dele deles depois desde dessa desse desta
deste do dos e é ela elas ele eles em enquanto entre era eram essa essas esse esses esta está estão estar estas estava estavam este estes estou eu foi foram fui há isso isto já la lhe
lhes lo mais mas me mesmo meu meus minha minhas muito muitos na não nas nem nenhum no nos nós nossa nosso num numa o oi os ou para pela pelas pelo pelos per pode podem por porque por que pois
qual quais qualquer quando quanto quanta quantos quantas que quê quem se sem sempre ser será seu seus si sido só sobre sou sua suas também tão te tem têm tenho ter teu tinha tinham toda todas todo todos tu tua tudo um uma umas
uns vai você vocês vou onde disse sabe`,
	ru: `а без более бы был была были было быть в вам вас весь во вот все всего всех всё вы где да даже для до его ее её ей ему если есть еще ещё же за здесь и из или им их
к как какая какие какой какое каком кем когда кого кому который которая которые которое кто куда ли либо между меня мне много мной мог может можно мой моя моё мое мои мы на над надо нам нас наш наша не него нее ней нет ни
них но ну о об однако он она они оно от очень по под после потом потому почему при про раз разве с сам свою своей своего себе себя сейчас со так также такой там твой твоя тебе тебя тем теперь то того тоже
той только том тот тут ты у уж уже хотя чего чей чем через что чтобы чтоб чья эта эти это этого этой этом этот эту я привет скажи сказал сказала помнишь знаешь сколько`,
}

// Han and kana that say little in a question.
const stopIdeographs = `的 了 是 我 你 您 他 她 它 们 有 没 吗 呢 吧 啊 在 和 与 也 都 就 还 要 会 能 可 以 个 这 那 哪 什 么 谁 怎 样 几 多 少 为 不 很 到 过 着 把 被 给 对 说 去 来 从 吃 么 什么 我的 你的 他的 她的 我们 你们 他们 是什 么时 时候 什么时 哪里 哪个 哪儿 怎么 多少 为什 有没 没有 叫什 的是 是谁 在哪 几个 了什 过什 欢什 吗 呀 何 は が を に で と も の か ね よ です ます した ない`

// smallWords tells the languages a stop word is one in, a bit for each.
var smallWords, stopIdeo = makeSmallWords()

func makeSmallWords() (map[string]uint8, map[string]bool) {
	small := make(map[string]uint8, 2000)
	for l, list := range stopWords {
		for w := range strings.FieldsSeq(list) {
			small[foldWord(w)] |= 1 << l
		}
	}
	ideo := map[string]bool{}
	for w := range strings.FieldsSeq(stopIdeographs) {
		ideo[w] = true
	}
	return small, ideo
}

// irregular leads from forms that no rule of endings explains to their base.
var irregular = makeIrregular([languages]string{
	en: `be:am,is,are,was,were,been arise:arose,arisen awake:awoke,awoken bear:bore,born,borne beat:beaten become:became begin:began,begun bend:bent bite:bit,bitten
bleed:bled blow:blew,blown break:broke,broken breed:bred bring:brought build:built burn:burnt buy:bought catch:caught choose:chose,chosen cling:clung come:came
creep:crept deal:dealt dig:dug dive:dove do:did,done draw:drew,drawn dream:dreamt drink:drank,drunk drive:drove,driven eat:ate,eaten fall:fell,fallen feed:fed feel:felt fight:fought
find:found flee:fled fly:flew,flown forget:forgot,forgotten forgive:forgave,forgiven freeze:froze,frozen get:got,gotten give:gave,given go:went,gone grow:grew,grown
hang:hung have:has,had hear:heard hide:hid,hidden hold:held keep:kept kneel:knelt know:knew,known lay:laid lead:led lean:leant learn:learnt leave:left lend:lent
lie:lay,lain light:lit lose:lost make:made mean:meant meet:met pay:paid ride:rode,ridden ring:rang,rung rise:rose,risen run:ran say:said see:saw,seen seek:sought sell:sold
send:sent shake:shook,shaken shine:shone shoot:shot show:shown shrink:shrank,shrunk sing:sang,sung sink:sank,sunk sit:sat sleep:slept slide:slid speak:spoke,spoken
speed:sped spend:spent spin:spun stand:stood steal:stole,stolen stick:stuck sting:stung strike:struck swear:swore,sworn sweep:swept swim:swam,swum swing:swung take:took,taken
teach:taught tear:tore,torn tell:told think:thought throw:threw,thrown understand:understood wake:woke,woken wear:wore,worn weave:wove,woven weep:wept win:won
wind:wound write:wrote,written child:children man:men woman:women person:people foot:feet tooth:teeth mouse:mice goose:geese wife:wives knife:knives life:lives
leaf:leaves half:halves mum:mom,mother,mommy dad:father,daddy photo:picture,pic good:better,best bad:worse,worst`,
	de: `geh:ging,gingen,gegangen,gehe,gehst,geht,gehen komm:kam,kamen,gekommen,komme,kommst,kommt,kommen fahr:fuhr,fuhren,gefahren,fahre,fährst,fährt,fahren find:fand,fanden,gefunden,finden
nehm:nahm,nahmen,genommen,nimmt,nimmst,nehme,nehmen geb:gab,gaben,gegeben,gebe,geben seh:sah,sahen,gesehen,sieht,siehst,sehe,sehen ess:aß,aßen,gegessen,isst,esse,essen trink:trank,tranken,getrunken,trinkt,trinke,trinken
les:las,lasen,gelesen,liest,lese,lesen schreib:schrieb,schrieben,geschrieben,schreibt,schreibe,schreiben sprech:sprach,sprachen,gesprochen,spricht,spreche,sprechen treff:traf,trafen,getroffen,trifft,treffe,treffen
helf:half,halfen,geholfen,hilft,helfe,helfen werf:warf,warfen,geworfen,wirft,werfe,werfen bleib:blieb,blieben,geblieben,bleibt,bleibe,bleiben lieg:lag,lagen,gelegen,liegt,liege,liegen sitz:saß,saßen,gesessen,sitzt,sitze,sitzen
steh:stand,standen,gestanden,steht,stehe,stehen lauf:lief,liefen,gelaufen,läuft,laufe,laufen schlaf:schlief,schliefen,geschlafen,schläft,schlafe,schlafen fall:fiel,fielen,gefallen,fällt,falle,fallen
flieg:flog,flogen,geflogen,fliegt,fliege,fliegen zieh:zog,zogen,gezogen,zieht,ziehe,ziehen umzieh:umgezogen,umziehen,umzug verlier:verlor,verloren,verliert,verliere,verlieren gewinn:gewann,gewonnen,gewinnt,gewinnen beginn:begann,begonnen,beginnt,beginnen
schwimm:schwamm,geschwommen,schwimmt,schwimme,schwimmen sing:sang,gesungen,singt,singe,singen trag:trug,getragen,trägt,trage,tragen wasch:wusch,gewaschen,wäscht,waschen wachs:wuchs,gewachsen,wächst,wachsen
denk:dachte,dachten,gedacht,denkt,denke,denken bring:brachte,brachten,gebracht,bringt,bringe,bringen kenn:kannte,kannten,gekannt,kennt,kenne,kennen nenn:nannte,genannt,nennt,nennen heiß:hieß,hießen,geheißen,heißt,heiße,heißen
kauf:kaufte,kauften,gekauft,kauft,kaufe,kaufen arbeit:arbeitete,gearbeitet,arbeitet,arbeite,arbeiten wohn:wohnte,gewohnt,wohnt,wohne,wohnen leb:lebte,gelebt,lebt,lebe,leben mach:machte,gemacht,macht,mache,machen lern:lernte,gelernt,lernt,lerne,lernen
spiel:spielte,gespielt,spielt,spiele,spielen reis:reiste,gereist,reist,reise,reisen koch:kochte,gekocht,kocht,koche,kochen heirat:heiratete,geheiratet,heiratet,heirate,heiraten,verheiratet such:suchte,gesucht,sucht,suche,suchen schenk:schenkte,geschenkt,schenkt,schenke,schenken
feier:feierte,gefeiert,feiert,feiere,feiern besuch:besuchte,besucht,besuche,besuchen mal:malte,gemalt,malt,male,malen bau:baute,gebaut,baut,baue,bauen miet:mietete,gemietet,mietet,miete,mieten stell:stellte,gestellt,stellt,stelle,stellen`,
	es: `ir:fuimos,fuiste,voy,vas,vamos,van,iba,iban,ido hacer:hizo,hice,hicimos,hicieron,hago,hecho tener:tuvo,tuve,tuvimos,tuvieron venir:vino,vine,vinieron,viene,vengo decir:dijo,dije,dijeron,digo,dicho ver:vio,vi,vieron,veo,visto,vimos
poner:puso,puse,pusieron,pongo,puesto querer:quiso,quise,quiero,quiere,quieren saber:supo,supe,sé poder:pudo,pude traer:trajo,traje,traigo dar:dio,di,dieron,doy leer:leyó,leí,leyeron,lee jugar:juega,juego,juegan,jugó dormir:duerme,duermo,durmió
escribir:escrito comprar:compró,compré,compra,compran,comprado empezar:empieza,empezó,empiezo conocer:conozco,conoció,conocí morir:murió,muerto volver:vuelve,volvió,vuelto nacer:nació,nacido encontrar:encuentra,encontró,encontré perder:pierde,perdió,perdí contar:cuenta,contó`,
	fr: `aller:vais,vas,va,vont,allé,allée,allés,ira,allait avoir:eu faire:fais,faites,faisait,faisons voir:vois,voit,vu,vue,vus,vues,voyons venir:viens,vient,venu,venue,viennent prendre:prends,prend,pris,prise,prennent mettre:mets,met,mis,mise
lire:lis,lit,lu,lue,lisent écrire:écris,écrit,écrite,écrivent boire:bois,boit,bu,boivent savoir:sais,sait,su vouloir:veut,voulu,veulent devenir:deviens,devient,devenu,devenue naître:né,née,nés,naquit mourir:mort,meurt,morte vivre:vis,vit,vécu,vivent
acheter:achète,achètes,achètent,acheté,achetée appeler:appelle,appelles,appelé offrir:offert,offre,offerte perdre:perdu,perds,perd,perdue partir:pars,part,parti,partie courir:cours,court,couru`,
	it: `andare:vado,vai,va,andiamo,vanno,andato,andata,andati fare:faccio,fai,facciamo,fanno,fatto,fatta,fece vedere:visto,vista,vide venire:vengo,viene,vengono,venuto,venuta prendere:preso,presa,prese dire:detto,dico,dice,disse mettere:messo,messa
leggere:letto,lesse scrivere:scritto,scrisse bere:bevo,beve,bevuto vivere:vissuto,visse nascere:nato,nata,nacque morire:morto,morta perdere:perso,persa,perduto vincere:vinto,vinse scegliere:scelto,scelse rimanere:rimasto,rimane uscire:esco,esce,uscito,uscita comprare:comprato,comprata,compra,comprò`,
	pt: `ir:vai,vamos,vão,fomos,ia,ido fazer:fez,fiz,fizeram,faço,faz,feito ter:teve,tive,tiveram vir:veio,vim,vieram,vem,venho dizer:disse,diz,dito ver:viu,vi,viram,vejo,visto,vê pôr:pôs,pus,posto querer:quis,quero,quer saber:soube,sei poder:pôde,posso
trazer:trouxe,trago,traz dar:deu,dei,deram,dou ler:leu,li,lê,leio escrever:escrito nascer:nasceu,nascido perder:perdeu,perdi,perco dormir:durmo,dorme,dormiu comprar:comprou,comprei,compra,comprado`,
	ru: `идти:шел,шла,шли,иду,идет,идут,пошел,пошла,пошли,пойти ехать:еду,едет,едут,ехал,поехал,поехала,поехали,поехать есть:ем,ест,едят,ел,ела,съел,съела дать:дал,дала,дали,дам,даст купить:купил,купила,купили,куплю,купит
человек:люди,людей,людям,людьми ребенок:дети,детей,детям,детьми,ребенка,ребенку брать:беру,берет,брал,взять,взял,взяла,возьму писать:пишу,пишет,писал,писала,написал,написала жить:живу,живет,живут,жил,жила,жили друг:друзья,друзей,друзьям мать:матери,мама,маме,маму,мамы,мамой отец:отца,отцу,папа,папе,папу,папы`,
})

// makeIrregular reads lines of base:form,form.
func makeIrregular(tables [languages]string) [languages]map[string]string {
	var out [languages]map[string]string
	for l, table := range tables {
		out[l] = map[string]string{}
		for entry := range strings.FieldsSeq(table) {
			base, forms, _ := strings.Cut(entry, ":")
			for form := range strings.SplitSeq(forms, ",") {
				out[l][foldWord(form)] = foldWord(base)
			}
		}
	}
	return out
}
