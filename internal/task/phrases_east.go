package task

// In these there are no spaces between words; those that people put are allowed.

var chinese = tongue{
	name:  "zh",
	at:    `(?:{part} ?)?(?:{fix}|{h} ?(?:(?:点|點|时|時)(?: ?(?:(?P<half>半)|(?P<quarter>一刻)|整|钟|(?P<m>[0-9]{1,2}|十|十五|二十|三十|四十|五十)分?))?|:(?P<m2>[0-9]{2})))`,
	parts: map[string]string{"凌晨": "dawn", "早上": "morning", "早晨": "morning", "上午": "morning", "中午": "noon", "下午": "afternoon", "傍晚": "evening", "晚上": "evening"},
	fixed: map[string]string{"正午": "12:00", "午夜": "00:00"},
	numbers: map[string]int{"一": 1, "二": 2, "两": 2, "兩": 2, "三": 3, "四": 4, "五": 5, "六": 6, "七": 7, "八": 8, "九": 9, "十": 10, "十一": 11, "十二": 12,
		"十五": 15, "二十": 20, "三十": 30, "四十": 40, "五十": 50},
	units:    map[string]int{"秒": aSecond, "秒钟": aSecond, "秒鐘": aSecond, "分钟": aMinute, "分鐘": aMinute, "小时": anHour, "小時": anHour, "个小时": anHour, "個小時": anHour, "个钟头": anHour, "天": aDay, "周": aWeek, "星期": aWeek, "个星期": aWeek},
	weekdays: map[string]string{"一": "mon", "二": "tue", "三": "wed", "四": "thu", "五": "fri", "六": "sat", "日": "sun", "天": "sun"},
	date:     `(?P<dom>[0-9]{1,2})(?:号|號|日)`,
	forms: []wording{
		{inSense, `(?:过|過)? ?{n} ?{unit} ?(?:后|後|之后|之後|以后|以後)`}, {inSense, `(?P<halved>半(?:个|個)?(?:小时|小時)) ?(?:后|後|之后|以后)`},
		{todaySense, `今天 ?{at}`}, {tomorrowSense, `(?:明天|明日) ?{at}`}, {afterSense, `(?:后天|後天) ?{at}`},
		{todaySense, `今(?P<pre>晚) ?{at}`}, {tomorrowSense, `明(?P<pre>晚) ?{at}`}, {tomorrowSense, `明(?P<pre>早) ?{at}`},
		{weekdaySense, `(?:这|這)?(?:周|週|星期|礼拜|禮拜){day} ?{at}`},
		{dailySense, `每(?:天|日) ?{at}`}, {workdaySense, `(?:每个)?(?:工作日|周一到周五|周一至周五) ?{at}`},
		{weeklySense, `每(?:周|週|星期|礼拜|禮拜|个星期|个周){day} ?{at}`},
		{monthlySense, `每(?:个|個)?月 ?{date} ?{at}`},
		{intervalSense, `每(?:隔)? ?{n} ?{unit}`}, {intervalSense, `每(?:隔)? ?{unit}`}, {intervalSense, `每(?P<halved>半(?:个|個)?(?:小时|小時))`},
	},
	pre: map[string]string{"晚": "evening", "早": "morning"},
}

var japanese = tongue{
	name:  "ja",
	at:    `(?:の|、)? ?(?:{part}(?:の)? ?)?(?:{fix}|{h} ?(?:時(?: ?(?:(?P<half>半)|(?P<m>[0-9]{1,2}|十|十五|二十|三十|四十|五十)分))?|:(?P<m2>[0-9]{2})))(?: ?に)?`,
	parts: map[string]string{"午前": "am", "午後": "pm", "朝": "morning", "昼": "noon", "夕方": "evening", "夜": "evening", "晩": "evening"},
	fixed: map[string]string{"正午": "12:00", "真夜中": "00:00"},
	numbers: map[string]int{"一": 1, "二": 2, "三": 3, "四": 4, "五": 5, "六": 6, "七": 7, "八": 8, "九": 9, "十": 10, "十一": 11, "十二": 12,
		"十五": 15, "二十": 20, "三十": 30, "四十": 40, "五十": 50},
	units:    map[string]int{"秒": aSecond, "秒間": aSecond, "分": aMinute, "分間": aMinute, "時間": anHour, "日": aDay, "日間": aDay, "週間": aWeek},
	weekdays: map[string]string{"月": "mon", "火": "tue", "水": "wed", "木": "thu", "金": "fri", "土": "sat", "日": "sun"},
	date:     `(?P<dom>[0-9]{1,2})日`,
	forms: []wording{
		{inSense, `(?:あと|今から)? ?{n} ?{unit} ?後(?: ?に)?`}, {inSense, `(?:あと|今から)? ?(?P<halved>半時間|30分) ?後(?: ?に)?`},
		{todaySense, `(?:今日|本日)(?:は)? ?{at}`}, {todaySense, `今(?P<pre>夜|晩)(?:の)? ?{at}`}, {tomorrowSense, `(?:明日|あした|あす)(?:は)? ?{at}`}, {afterSense, `(?:明後日|あさって) ?{at}`},
		{weekdaySense, `{day}曜(?:日)? ?{at}`},
		{dailySense, `毎日 ?{at}`}, {dailySense, `毎(?P<pre>朝|晩) ?{at}`}, {workdaySense, `(?:平日|毎平日)(?:は)? ?{at}`},
		{weeklySense, `毎週 ?{day}曜(?:日)? ?{at}`}, {monthlySense, `毎月 ?{date} ?{at}`},
		{intervalSense, `{n} ?{unit} ?(?:ごと|毎|おき)(?: ?に)?`}, {intervalSense, `毎(?P<unit>時間)`},
	},
	pre: map[string]string{"朝": "morning", "夜": "evening", "晩": "evening"},
}
