package main

var peopleJ2German = []string{
	"Fr. Albers", "Hr. Albers", "Fr. Albrecht", "Hr. Brandt", "Hr. Brand", "Fr. Celik", "Hr. Celik", "Fr. Dahm", "Opa Heinz", "Oma Heidi", "Fr. Ehlers", "Fr. Ehlert", "Hr. Fuchs", "Fr. Gruber",
	"Hr. Huber", "Fr. Huber", "Tante Inge", "Hr. Jansen", "Hr. Janssen", "Fr. Kowalski", "Hr. Lorenz", "Fr. Lorenz", "Hr. Nowak", "Fr. Özdemir", "Hr. Petersen", "Fr. Peters", "Hr. Quast", "Fr. Sauer", "Hr. Thiele", "Fr. Ullmann",
}

var j2German = set{
	name: "j2 german", people: peopleJ2German, join: "%s; %s",
	attrs: []attribute{
		{name: "meto", values: []string{"23,75 mg", "47,5 mg", "95 mg", "190 mg"}, again: true, say: []string{"{p} Metoprolol {v} morgens", "{p} nimmt morgens {v} Metoprolol", "Metoprolol {p}: {v} früh"},
			update: []string{"{p} Metoprolol ab sofort {v} statt {o}", "Metoprolol {p} umgestellt auf {v}", "{p}: Metoprolol geändert, jetzt {v} morgens", "Metoprolol {p} nicht mehr {o}, sondern {v}"}},
		{name: "cort", values: []string{"3 mg", "30 mg", "2,5 mg", "25 mg"}, of: 2, say: []string{"{p} Prednisolon {v} abends", "{p} nimmt abends {v} Prednisolon"}, update: []string{"Prednisolon {p} ab heute {v}", "{p} Prednisolon: Korrektur, es sind {v} abends, nicht {o}"}},
		{name: "insulin", values: []string{"12 IE", "14 IE", "21 IE", "24 IE"}, of: 2, say: []string{"{p} spritzt {v} Lantus zur Nacht", "Lantus {p} {v} zur Nacht"}, update: []string{"Lantus {p} seit Montag {v} zur Nacht", "{p} spritzt nun {v} Lantus zur Nacht statt {o}"}},
		{name: "besuch", values: []string{"7:30", "17:30", "7:15", "19:30", "8:00"}, again: true, say: []string{"Pflegedienst kommt zu {p} um {v} Uhr", "{p}: Pflegedienst {v} Uhr"},
			update: []string{"Pflegedienst bei {p} verschoben auf {v} Uhr", "Pflegedienst kommt zu {p} jetzt erst um {v} Uhr", "{p}: Pflegedienst doch {v} Uhr, nicht {o} Uhr"}},
		{name: "station", values: []string{"3A", "3B", "13A", "13B", "5"}, of: 2, again: true, say: []string{"{p} liegt auf Station {v}", "{p} auf Station {v}"}, update: []string{"{p} von Station {o} auf Station {v} verlegt", "{p} liegt jetzt auf Station {v}", "{p} wurde auf Station {v} verlegt"}},
		{name: "zimmer", values: []string{"112", "121", "12", "211"}, of: 3, say: []string{"{p} Zimmer {v}", "{p} liegt in Zimmer {v}"}, update: []string{"{p} neues Zimmer: {v}", "{p} ist in Zimmer {v} umgezogen"}},
		{name: "allergie", values: []string{"Penicillin", "Latex", "Jod", "Ibuprofen", "Pflaster"}, each: 2, say: []string{"{p} allergisch gegen {v}", "Allergie {p}: {v}", "{p} verträgt {v} nicht"}, not: []string{"{p} ist doch nicht allergisch gegen {v}", "Allergie gegen {v} bei {p} hat sich nicht bestätigt"}},
		{name: "versnr", values: []string{"V4711%02d", "V4712%02d", "W4711%02d"}, say: []string{"Versichertennr. {p}: {v}", "{p} hat die Versichertennummer {v}"}, update: []string{"Versichertennr. {p} war falsch, richtig ist {v}"}},
		{name: "kasse", values: []string{"AOK", "TK", "Barmer", "DAK", "IKK"}, say: []string{"Krankenkasse {p}: {v}", "{p} ist bei der {v} versichert"}, update: []string{"{p} hat von der {o} zur {v} gewechselt", "{p} seit 1.4. bei der {v} versichert", "{p} jetzt {v} statt {o}"}},
		{name: "hausarzt", values: []string{"Dr. Meier", "Dr. Meyer", "Dr. Maier", "Dr. Roth"}, say: []string{"Hausarzt {p}: {v}", "{p} hat {v} als Hausarzt"}, update: []string{"{p} hat den Hausarzt gewechselt, jetzt {v}", "Hausarzt {p} nicht mehr {o}, sondern {v}"}},
		{name: "kardio", values: []string{"Dr. Meier", "Dr. Meyer", "Dr. Sommer"}, of: 2, say: []string{"Kardiologe {p}: {v}", "{p} geht zu {v} in die Kardiologie"}},
		{name: "pg", values: []string{"1", "2", "3", "4"}, say: []string{"Pflegegrad {p}: {v}", "{p} hat Pflegegrad {v}"}, update: []string{"{p} seit März Pflegegrad {v}", "Pflegegrad {p} von {o} auf {v} geändert", "{p} wurde in Pflegegrad {v} eingestuft"}},
		{name: "tochter", values: phones, of: 2, say: []string{"Tel. Tochter von {p}: {v}", "Tochter von {p} erreichbar unter {v}"}, update: []string{"Tochter von {p} hat neue Nummer: {v}"}},
		{name: "sohn", values: phones, of: 2, say: []string{"Tel. Sohn von {p}: {v}", "Sohn von {p} erreichbar unter {v}"}},
		{name: "box", values: pins, say: []string{"Schlüsselbox {p}: {v}", "Code der Schlüsselbox bei {p} ist {v}"}, update: []string{"Schlüsselbox {p} neuer Code {v}", "Code der Schlüsselbox bei {p} jetzt {v}, {o} gilt nicht mehr"}},
		{name: "gewicht", values: []string{"62,4 kg", "64,2 kg", "82,4 kg", "84,2 kg"}, of: 2, say: []string{"Gewicht {p} {v}", "{p} wiegt {v}"}, update: []string{"{p} wiegt inzwischen {v}", "Gewicht {p} aktuell {v}"}},
		{name: "kost", values: []string{"Schonkost", "Vollkost", "Breikost", "Diabeteskost"}, of: 2, say: []string{"{p} bekommt {v}", "Kostform {p}: {v}"}, update: []string{"{p} bekommt keine {o} mehr, sondern {v}", "{p} umgestellt von {o} auf {v}"}},
		{name: "hilfe", values: []string{"Rollator", "Gehstock", "Rollstuhl", "Badewannenlift"}, each: 2, of: 2, say: []string{"{p} benutzt {v}", "Hilfsmittel {p}: {v}"}, not: []string{"{p} benutzt {v} nicht mehr", "{p} braucht {v} nicht mehr"}},
		{name: "impfung", values: []string{"Grippe 10/2023", "Grippe 10/2024", "Tetanus 3/2019"}, each: 2, of: 3, say: []string{"Impfung {p}: {v}", "{p} geimpft: {v}"}},
		{name: "nie", values: []string{"Alkohol", "Kaffee", "Milch"}, of: 3, say: []string{"{p} trinkt nie {v}", "{p} trinkt niemals {v}"}},
		{name: "ramipril", values: []string{"Ramipril", "Torasemid", "Marcumar", "Pantoprazol"}, each: 2, say: []string{"{p} nimmt {v}", "{p} bekommt {v}", "Medikation {p}: {v}"}, not: []string{"{p} nimmt kein {v} mehr", "{v} bei {p} abgesetzt", "{p} bekommt {v} nicht mehr"}},
		{name: "termin", values: []string{"3.4. um 7:30 Uhr", "13.4. um 7:30 Uhr", "3.4. um 17:30 Uhr", "4.3. um 10 Uhr"}, of: 2, again: true, say: []string{"Kontrolltermin {p} am {v}", "{p} hat Kontrolltermin am {v}"}, update: []string{"Kontrolltermin {p} verlegt auf {v}", "Kontrolltermin {p} nochmals verschoben, nun am {v}", "Kontrolltermin {p} nicht am {o}, sondern am {v}"}},
	},
	self: []attribute{
		{name: "dienst", values: []string{"Frühdienst", "Spätdienst", "Nachtdienst"}, say: []string{"Ich habe montags {v}", "Montags mache ich {v}"}, update: []string{"Ich habe montags jetzt {v}"}},
		{name: "spind", values: pins, say: []string{"Mein Spindcode ist {v}"}, update: []string{"Mein Spindcode ist nun {v}"}},
		{name: "auto", values: []string{"B-AB 4711", "B-AB 4712"}, say: []string{"Mein Dienstwagen hat das Kennzeichen {v}", "Kennzeichen meines Dienstwagens: {v}"}},
		{name: "auto2", values: []string{"B-AB 4713", "B-AB 4712"}, say: []string{"Mein Privatwagen hat das Kennzeichen {v}"}},
		{name: "mag", values: []string{"Doppelschichten", "Teambesprechungen", "Wochenenddienste"}, each: 2, say: []string{"Ich mag {v}", "Ich mag {v} sehr"}, not: []string{"Ich mag {v} nicht mehr"}},
	},
}

var peopleJ2English = []string{
	"mia", "mila", "jon", "john", "sam", "samir", "tess", "tessa", "kate", "katie", "ben", "benny", "lou", "louise", "max", "maxine", "my sister", "my brother", "my mum", "dad",
	"my cousin rob", "my cousin ron", "priya", "pria", "ollie", "nora", "gus", "hal", "ivy", "zed",
}

var j2English = set{
	name: "j2 english", people: peopleJ2English, join: "%s, oh and %s",
	attrs: []attribute{
		{name: "city", values: []string{"leeds", "york", "bath", "new york", "cork", "derby"}, again: true, say: []string{"{p} lives in {v}", "{p}'s living in {v}", "{p} is based in {v}"}, update: []string{"{p} moved from {o} to {v}", "{p}'s moved to {v}", "{p} doesn't live in {o} anymore, it's {v} now", "{p} lives in {v} now lol"}},
		{name: "dog", values: []string{"biscuit", "waffles", "rex", "roxy"}, of: 2, say: []string{"{p}'s dog is called {v}", "{p} has a dog called {v}"}},
		{name: "cat", values: []string{"biscuit", "mittens", "luna", "lulu"}, of: 2, say: []string{"{p}'s cat is called {v}", "{p} has a cat called {v}"}},
		{name: "coffee", values: []string{"flat white", "espresso", "latte", "cappuccino", "cold brew"}, say: []string{"{p}'s go-to coffee is a {v}", "{p} always orders a {v}"}, update: []string{"{p} switched from {o} to {v}", "{p}'s go-to coffee is a {v} now, not {o}", "{p} always orders a {v} these days instead of {o}"}},
		{name: "likes", values: []string{"karaoke", "camping", "brunch", "sudoku", "bouldering", "true crime"}, each: 2, say: []string{"{p} loves {v}", "{p}'s really into {v}", "{p} likes {v}"}, not: []string{"{p} isn't into {v} anymore", "{p} doesn't like {v} anymore", "{p}'s over {v} now"}},
		{name: "hates", values: []string{"olives", "coriander", "horror films", "small talk"}, each: 2, of: 2, say: []string{"{p} can't stand {v}", "{p} hates {v}", "{p} really doesn't like {v}"}},
		{name: "plays", values: []string{"guitar", "drums", "squash", "padel"}, of: 2, say: []string{"{p} plays {v}", "{p} plays {v} every week"}, not: []string{"{p} stopped playing {v}", "{p} gave up {v}", "{p} quit {v}"}},
		{name: "flight", values: []string{"7:30", "17:30", "6:05", "16:05", "21:40"}, again: true, say: []string{"{p}'s flight leaves at {v}", "{p} flies out at {v}"}, update: []string{"{p}'s flight got pushed to {v}", "{p}'s flight is delayed again, leaves at {v}", "actually {p}'s flight leaves at {v}, not {o}"}},
		{name: "hotel", values: []string{"room 112", "room 121", "room 12", "room 212"}, of: 2, say: []string{"{p}'s in {v} at the hotel", "{p}'s hotel room is {v}"}, update: []string{"{p} got moved to {v} at the hotel", "{p} is in {v} now, not {o}"}},
		{name: "been", values: []string{"japan in 2018", "japan in 2019", "peru in 2022", "malta in 2021"}, each: 2, say: []string{"{p} went to {v}", "{p} was in {v}"}},
		{name: "trip", values: []string{"norway", "vietnam", "scotland", "portugal"}, say: []string{"{p}'s next trip is {v}", "{p} is going to {v} next"}, update: []string{"change of plans, {p}'s going to {v} instead of {o}", "{p}'s next trip is {v} after all", "{p} isn't going to {o}, it's {v} now"}},
		{name: "budget", values: []string{"$1200", "$1250", "$2100", "$12,000"}, of: 2, say: []string{"{p}'s budget for the trip is {v}", "{p} wants to spend {v} on the trip"}, update: []string{"{p}'s trip budget is {v} now", "i was wrong, {p}'s budget for the trip is {v}"}},
		{name: "passport", values: []string{"X4711%02d", "X4712%02d"}, of: 2, say: []string{"{p}'s passport number is {v}", "passport number for {p}: {v}"}, update: []string{"{p} got a new passport, number is {v}"}},
		{name: "bday", values: []string{"3rd of may", "13th of may", "5th of march", "30th of june"}, say: []string{"{p}'s birthday is the {v}", "{p}'s bday is the {v}"}, update: []string{"oops {p}'s birthday is actually the {v}", "got it wrong, {p}'s bday is the {v}"}},
		{name: "bike", values: []string{"trek", "canyon", "brompton", "giant"}, of: 2, say: []string{"{p} rides a {v}", "{p}'s bike is a {v}"}, update: []string{"{p} sold the {o} and got a {v}", "{p} rides a {v} now"}},
		{name: "show", values: []string{"severance", "the bear", "dark", "succession", "slow horses"}, of: 2, say: []string{"{p}'s watching {v} rn", "{p} is watching {v} at the moment"}, update: []string{"{p} finished {o} and is watching {v} now", "{p}'s onto {v} now"}},
		{name: "diet", values: []string{"vegan", "veggie", "pescatarian", "keto"}, of: 2, say: []string{"{p}'s {v}", "{p} is {v}"}, update: []string{"{p} isn't {o} anymore, {p}'s {v} now", "{p} went from {o} to {v}", "since march {p}'s {v}"}},
		{name: "allergy", values: []string{"peanuts", "cats", "dogs", "pollen"}, each: 2, of: 3, say: []string{"{p}'s allergic to {v}", "{p} is allergic to {v}"}},
		{name: "gym", values: []string{"mondays", "tuesdays", "thursdays", "saturdays"}, say: []string{"{p} goes climbing on {v}", "{p}'s climbing day is {v}"}, update: []string{"{p} goes climbing on {v} now", "{p}'s climbing day moved from {o} to {v}"}},
		{name: "never", values: []string{"new zealand", "paris", "alaska"}, of: 3, say: []string{"{p} has never been to {v}", "{p}'s never been to {v}"}},
		{name: "insta", values: []string{"wander.%02d", "wander_%02d", "trailz%02d"}, of: 2, say: []string{"{p}'s insta is {v}", "{p} is {v} on insta"}, update: []string{"{p} changed insta handle, it's {v} now"}},
	},
	self: []attribute{
		{name: "me seat", values: []string{"a window seat", "an aisle seat"}, say: []string{"i always want {v}", "i always book {v}"}, update: []string{"i've changed my mind, i always want {v} now"}},
		{name: "me like", values: []string{"jazz", "techno", "folk", "metal"}, each: 3, say: []string{"i love {v}", "i'm really into {v}"}, not: []string{"i'm not into {v} anymore", "i don't like {v} anymore"}},
		{name: "me phone", values: []string{"pixel 7", "pixel 7a", "iphone 13"}, say: []string{"my phone's a {v}"}, update: []string{"i've got a {v} now instead of the {o}"}},
		{name: "me vet", values: []string{"dr moss", "dr mosse"}, say: []string{"our vet is {v}", "we take the dog to {v}"}, update: []string{"we've changed vets, it's {v} now"}},
		{name: "me dentist", values: []string{"dr moss", "dr hale"}, say: []string{"my dentist is {v}"}},
	},
}

var peopleJ2Chinese = []string{
	"王伟", "王玮", "李娜", "李娜娜", "张敏", "张明", "刘洋", "刘阳", "陈静", "陈晶", "杨柳", "赵磊", "赵雷", "黄海", "周杰", "周洁", "吴刚", "徐丽", "孙浩", "胡军", "爸爸", "妈妈", "姐姐", "弟弟", "大姨", "小姨", "爷爷", "外婆", "高飞", "林涛",
}

var j2Chinese = set{
	name: "j2 chinese", people: peopleJ2Chinese, join: "%s，另外%s", end: "。",
	attrs: []attribute{
		{name: "city", values: []string{"上海", "北京", "南京", "成都", "苏州", "杭州"}, again: true, say: []string{"{p}住在{v}", "{p}家在{v}", "{p}现在的住处在{v}"}, update: []string{"{p}从{o}搬到{v}了", "{p}已经搬到{v}", "{p}不住{o}了，现在住在{v}", "{p}现在住在{v}"}},
		{name: "job", values: []string{"会计", "护士", "律师", "程序员", "厨师", "老师"}, say: []string{"{p}是{v}", "{p}的职业是{v}", "{p}做{v}工作"}, update: []string{"{p}改行做{v}了", "{p}不当{o}了，现在是{v}", "{p}的职业不再是{o}，而是{v}"}},
		{name: "company", values: []string{"华为", "腾讯", "小米", "京东"}, of: 2, say: []string{"{p}在{v}上班", "{p}在{v}工作"}, update: []string{"{p}从{o}跳槽到{v}", "{p}三月起在{v}上班", "{p}换了公司，现在在{v}工作"}},
		{name: "phone", values: []string{"138 4711 00%02d", "138 4712 00%02d", "139 4711 00%02d"}, say: []string{"{p}的手机号是{v}", "{p}的电话是{v}"}, update: []string{"{p}换号了，新手机号是{v}", "{p}的新手机号是{v}"}},
		{name: "door", values: pins, say: []string{"{p}家的门锁密码是{v}", "{p}家门锁的密码：{v}"}, update: []string{"{p}家的门锁密码改成了{v}", "{p}家的门锁密码现在是{v}，不是{o}"}},
		{name: "safe", values: pins, of: 2, say: []string{"{p}家的保险箱密码是{v}", "{p}家保险箱的密码：{v}"}},
		{name: "floor", values: []string{"3楼|三楼", "13楼|十三楼", "5楼|五楼", "15楼|十五楼"}, say: []string{"{p}的办公室在{v}", "{p}的办公室在{w}", "{p}在{v}办公"}, update: []string{"{p}的办公室搬到{v}了", "{p}的办公室搬到{w}了", "{p}的办公室从{o}换到{v}"}},
		{name: "meeting", values: []string{"早上7点半|早上七点半", "下午5点半|下午五点半", "上午9点|上午九点", "下午2点|下午两点"}, again: true, say: []string{"{p}的例会是{v}", "{p}的例会定在{w}"}, update: []string{"{p}的例会推迟到{v}", "{p}的例会又改到{w}", "{p}的例会改成{v}，不是{o}"}},
		{name: "dose", values: []string{"3毫克", "30毫克", "5毫克", "50毫克"}, of: 2, say: []string{"{p}每天吃{v}华法林", "{p}的华法林每天{v}"}, update: []string{"{p}的华法林改为每天{v}", "{p}现在每天吃{v}华法林，不再是{o}"}},
		{name: "doctor", values: []string{"王医生", "汪医生", "李医生"}, of: 2, say: []string{"{p}的牙医是{v}", "{p}看牙找{v}"}, update: []string{"{p}换了牙医，现在是{v}"}},
		{name: "doctor2", values: []string{"王医生", "汪医生", "黎医生"}, of: 2, say: []string{"{p}的眼科医生是{v}"}},
		{name: "bday", values: []string{"3月5日|三月五日", "5月3日|五月三日", "3月15日|三月十五日", "12月1日|十二月一日"}, say: []string{"{p}的生日是{v}", "{p}{v}过生日", "{p}的生日是{w}"}, update: []string{"我记错了，{p}的生日其实是{v}", "更正：{p}的生日是{v}"}},
		{name: "food", values: []string{"火锅", "饺子", "豆腐", "臭豆腐", "榴莲"}, each: 2, say: []string{"{p}喜欢吃{v}", "{p}爱吃{v}", "{p}很喜欢{v}"}, not: []string{"{p}不再喜欢吃{v}了", "{p}已经不爱吃{v}了", "{p}不吃{v}了"}},
		{name: "allergy", values: []string{"花生", "海鲜", "青霉素", "花粉"}, each: 2, of: 2, say: []string{"{p}对{v}过敏", "{p}有{v}过敏"}},
		{name: "never", values: []string{"酒", "咖啡", "牛奶"}, of: 2, say: []string{"{p}从不喝{v}", "{p}从来不喝{v}"}},
		{name: "car", values: []string{"比亚迪", "大众", "丰田", "本田"}, say: []string{"{p}开{v}", "{p}的车是{v}"}, update: []string{"{p}把{o}卖了，现在开{v}", "{p}换了车，开{v}了"}},
		{name: "plate", values: []string{"沪A471%02d", "沪A472%02d"}, of: 2, say: []string{"{p}的车牌号是{v}", "{p}车牌：{v}"}},
		{name: "rent", values: []string{"3500元|三千五百元", "5300元|五千三百元", "3600元|三千六百元"}, of: 2, say: []string{"{p}的房租是{v}", "{p}每月房租{w}"}, update: []string{"{p}的房租涨到{v}", "{p}的房租现在是{w}"}},
		{name: "sport", values: []string{"羽毛球", "乒乓球", "游泳", "瑜伽"}, of: 2, say: []string{"{p}每周练{v}", "{p}每个星期都练{v}"}, not: []string{"{p}不练{v}了", "{p}已经不再练{v}", "{p}停止练{v}了"}},
		{name: "server", values: []string{"10.0.0.11", "10.0.0.111", "10.0.1.11"}, of: 2, say: []string{"{p}的测试服务器是{v}", "{p}的测试服务器地址：{v}"}, update: []string{"{p}的测试服务器迁到{v}"}},
		{name: "server2", values: []string{"10.0.0.12", "10.0.0.112", "10.0.1.11"}, of: 2, say: []string{"{p}的正式服务器是{v}", "{p}的正式服务器地址：{v}"}},
	},
	self: []attribute{
		{name: "me", values: []string{"产品经理", "设计师", "测试工程师"}, say: []string{"我是{v}", "我的职位是{v}"}, update: []string{"我现在是{v}了", "我的职位改成{v}"}},
		{name: "me2", values: []string{"爵士乐", "摄影", "钓鱼", "书法"}, each: 3, say: []string{"我喜欢{v}", "我很喜欢{v}"}, not: []string{"我不再喜欢{v}了"}},
		{name: "me3", values: []string{"7点|七点", "8点|八点"}, say: []string{"我每天{v}起床", "我每天{w}起床"}, update: []string{"我现在每天{v}起床"}},
		{name: "me4", values: []string{"王老师", "汪老师"}, say: []string{"我儿子的班主任是{v}"}, update: []string{"我儿子换了班主任，现在是{v}"}},
	},
}

var peopleJ2Japanese = []string{
	"田中さん", "田仲さん", "佐藤さん", "斎藤さん", "斉藤さん", "鈴木さん", "高橋さん", "伊藤さん", "伊東さん", "渡辺さん", "中村さん", "小林さん", "小森さん", "加藤さん", "吉田さん", "山田さん", "山本さん", "ゆうこ", "ゆうか", "けんた", "けんじ", "母", "父", "姉", "妹", "祖母", "部長", "課長", "マリア", "マリナ",
}

var j2Japanese = set{
	name: "j2 japanese", people: peopleJ2Japanese, join: "%s。それと%s", end: "。",
	attrs: []attribute{
		{name: "city", values: []string{"京都", "東京", "大阪", "札幌", "福岡", "仙台"}, again: true, say: []string{"{p}は{v}に住んでいる", "{p}は{v}に住んでいます", "{p}の家は{v}にあります"}, update: []string{"{p}は{o}から{v}に引っ越した", "{p}は{v}に引っ越しました", "{p}は今は{v}に住んでいます", "{p}はもう{o}ではなく{v}に住んでいる"}},
		{name: "job", values: []string{"看護師", "教師", "弁護士", "料理人", "会計士"}, say: []string{"{p}は{v}です", "{p}の仕事は{v}だ", "{p}は{v}として働いています"}, update: []string{"{p}は転職して今は{v}です", "{p}は{o}を辞めて{v}になりました", "{p}の仕事は{v}に変わった"}},
		{name: "company", values: []string{"トヨタ", "ソニー", "楽天", "任天堂"}, of: 2, say: []string{"{p}は{v}に勤めている", "{p}は{v}に勤めています", "{p}の勤務先は{v}です"}, update: []string{"{p}は{o}から{v}に転職した", "{p}は三月から{v}に勤めています", "{p}の勤務先は{v}になりました"}},
		{name: "phone", values: []string{"090-4711-00%02d", "090-4712-00%02d", "080-4711-00%02d"}, say: []string{"{p}の電話番号は{v}です", "{p}の電話番号は{v}", "{p}の電話：{v}"}, update: []string{"{p}の新しい電話番号は{v}です", "{p}の電話番号が{v}に変わった"}},
		{name: "door", values: pins, say: []string{"{p}の玄関の暗証番号は{v}です", "{p}の玄関の暗証番号は{v}だ"}, update: []string{"{p}の玄関の暗証番号は{v}に変わりました", "{p}の玄関の暗証番号は{o}ではなく{v}です"}},
		{name: "locker", values: pins, of: 2, say: []string{"{p}のロッカーの暗証番号は{v}です", "{p}のロッカーの暗証番号は{v}だ"}},
		{name: "floor", values: []string{"3階|三階", "13階|十三階", "5階|五階", "15階|十五階"}, say: []string{"{p}の席は{v}です", "{p}の席は{w}にある", "{p}の席は{v}にあります"}, update: []string{"{p}の席は{v}に移りました", "{p}の席が{o}から{v}に変わった", "{p}の席は今は{w}です"}},
		{name: "meeting", values: []string{"午前7時半|午前七時半", "午後5時半|午後五時半", "午前9時|午前九時", "午後2時|午後二時"}, again: true, say: []string{"{p}の定例会議は{v}です", "{p}の定例会議は{w}から"}, update: []string{"{p}の定例会議は{v}に延期になりました", "{p}の定例会議はまた変更で{w}になった", "{p}の定例会議は{o}ではなく{v}です"}},
		{name: "dose", values: []string{"3mg", "30mg", "5mg", "50mg"}, of: 2, say: []string{"{p}はワーファリンを毎日{v}飲んでいる", "{p}はワーファリンを毎日{v}飲んでいます"}, update: []string{"{p}のワーファリンは毎日{v}に変更", "{p}は今ワーファリンを毎日{v}飲んでいます"}},
		{name: "dentist", values: []string{"森先生", "林先生", "森田先生"}, of: 2, say: []string{"{p}の歯医者は{v}です", "{p}の歯医者は{v}だ"}, update: []string{"{p}は歯医者を{v}に替えました", "{p}の歯医者は{o}から{v}に替わった"}},
		{name: "eyes", values: []string{"森先生", "林先生", "森下先生"}, of: 2, say: []string{"{p}の眼科は{v}です", "{p}の眼科の先生は{v}だ"}},
		{name: "bday", values: []string{"3月5日|三月五日", "5月3日|五月三日", "3月15日|三月十五日", "12月1日|十二月一日"}, say: []string{"{p}の誕生日は{v}です", "{p}の誕生日は{w}だ", "{p}は{v}生まれです"}, update: []string{"間違えていた、{p}の誕生日は実は{v}だ", "訂正します。{p}の誕生日は{v}です"}},
		{name: "food", values: []string{"納豆", "寿司", "ラーメン", "カレー", "パクチー"}, each: 2, say: []string{"{p}は{v}が好きだ", "{p}は{v}が好きです", "{p}は{v}をよく食べる"}, not: []string{"{p}はもう{v}が好きではない", "{p}は{v}が好きではなくなりました", "{p}は{v}を食べなくなった"}},
		{name: "allergy", values: []string{"そば", "えび", "卵", "花粉"}, each: 2, of: 2, say: []string{"{p}は{v}アレルギーだ", "{p}は{v}アレルギーです", "{p}は{v}にアレルギーがあります"}},
		{name: "never", values: []string{"お酒", "コーヒー", "牛乳"}, of: 2, say: []string{"{p}は{v}を飲まない", "{p}は{v}を飲みません", "{p}は{v}を一切飲まない"}},
		{name: "car", values: []string{"プリウス", "フィット", "ヤリス", "デミオ"}, say: []string{"{p}は{v}に乗っている", "{p}は{v}に乗っています", "{p}の車は{v}です"}, update: []string{"{p}は{o}を売って{v}に乗っている", "{p}は今は{v}に乗っています", "{p}は車を{v}に買い替えました"}},
		{name: "rent", values: []string{"8万5千円|八万五千円", "5万8千円|五万八千円", "8万6千円|八万六千円"}, of: 2, say: []string{"{p}の家賃は{v}です", "{p}の家賃は{w}だ"}, update: []string{"{p}の家賃は{v}に上がった", "{p}の家賃は今は{w}です"}},
		{name: "sport", values: []string{"テニス", "卓球", "水泳", "ヨガ"}, of: 2, say: []string{"{p}は毎週{v}をしている", "{p}は毎週{v}をしています"}, not: []string{"{p}は{v}をやめた", "{p}は{v}をやめました", "{p}はもう{v}をしていません"}},
		{name: "server", values: []string{"10.0.0.11", "10.0.0.111", "10.0.1.11"}, of: 2, say: []string{"{p}の検証サーバーは{v}です", "{p}の検証サーバー：{v}"}, update: []string{"{p}の検証サーバーは{v}に移行しました"}},
		{name: "server2", values: []string{"10.0.0.12", "10.0.0.112", "10.0.1.11"}, of: 2, say: []string{"{p}の本番サーバーは{v}です", "{p}の本番サーバー：{v}"}},
	},
	self: []attribute{
		{name: "me", values: []string{"営業部", "開発部", "総務部"}, say: []string{"私は{v}にいます", "僕は{v}にいる"}, update: []string{"私は{v}に異動しました", "僕は今は{v}にいる"}},
		{name: "me2", values: []string{"ジャズ", "写真", "釣り", "書道"}, each: 3, say: []string{"私は{v}が好きです", "{v}が好き"}, not: []string{"私はもう{v}が好きではない"}},
		{name: "me3", values: []string{"6時|六時", "7時|七時"}, say: []string{"毎朝{v}に起きます", "毎朝{w}に起きる"}, update: []string{"今は毎朝{v}に起きます"}},
		{name: "me4", values: []string{"田中先生", "田仲先生"}, say: []string{"息子の担任は{v}です"}, update: []string{"息子の担任が{v}に変わりました"}},
	},
}
