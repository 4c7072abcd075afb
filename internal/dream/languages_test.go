package dream

import "testing"

// TestNegations: what says that something is not so is known in the languages that a
// conversation can begin in, and what denies in two words counts once; months and the
// like deny nothing.
func TestNegations(t *testing.T) {
	for _, c := range []struct {
		is, not string
	}{
		{"Anna eats meat", "Anna doesn't eat meat any more"}, {"Anna eats meat", "Anna never eats meat"}, {"Anna was born in May", "Nobody was born in May"},
		{"Anna isst Fleisch", "Anna isst kein Fleisch mehr"}, {"Anna hat am 3. Mai Geburtstag", "Anna hat nicht am 3. Mai Geburtstag"}, {"Er trinkt Bier", "Er trinkt niemals Bier"},
		{"Anna mange de la viande", "Anna ne mange pas de viande"}, {"Anna mange de la viande", "Anna ne mange plus de viande"}, {"Anna aime le vin", "Anna n'aime plus le vin"}, {"Anna aime le vin", "Anna n'aime pas du tout le vin"},
		{"Anna boit du vin", "Anna ne boit jamais de vin"}, {"Anna a vu un loup", "Anna n'a jamais vu de loup"}, {"Anna a vu un loup", "Anna n'a vu aucun loup"},
		{"Anna come carne", "Anna no come carne"}, {"Anna come carne", "Anna ya no come carne"}, {"Anna bebe vino", "Anna no bebe nunca vino"}, {"Anna bebe vino", "Anna nunca bebe vino"}, {"Anna come algo", "Anna no come nada"},
		{"Anna mangia carne", "Anna non mangia carne"}, {"Anna mangia carne", "Anna non mangia più carne"}, {"Anna beve vino", "Anna non beve mai vino"}, {"Anna mangia carne", "Anna non mangia mai niente"},
		{"Anna come carne", "Anna não come carne"}, {"Anna come carne", "Anna já não come carne"}, {"Anna bebe vinho", "Anna não bebe nunca vinho"}, {"Anna fuma", "Anna deixou de fumar"},
		{"安娜吃肉", "安娜不吃肉"}, {"安娜有狗", "安娜没有狗"}, {"安娜喝酒", "安娜不再喝酒"},
		{"アンナは肉を食べる", "アンナは肉を食べない"}, {"アンナは酒を飲みます", "アンナは酒を飲みません"},
		{"アンナはヨガをする", "アンナはヨガをやめました"}, {"アンナは卵を食べる", "アンナは卵を食べなくなった"}, {"安娜练瑜伽", "安娜停止练瑜伽了"},
	} {
		got := signed(c.is, c.not)
		if got[0].negative || !got[1].negative {
			t.Errorf("%s: %v, %s: %v", c.is, got[0].negative, c.not, got[1].negative)
		}
	}
}

// TestChanges: what says that something is not as it was.
func TestChanges(t *testing.T) {
	for _, text := range []string{
		"Anna has moved from Berlin to Hamburg", "Anna ist von Berlin nach Hamburg gezogen", "Anna a déménagé de Lyon à Lille", "Anna habite désormais à Lille", "Anna n'habite plus à Lyon",
		"Anna se ha mudado de Sevilla a Bilbao", "Anna vive ahora en Bilbao", "Anna ya no vive en Sevilla", "Anna si è trasferita da Pisa a Bari", "Anna adesso vive a Bari", "Anna non vive più a Pisa",
		"安娜从北京搬到上海了", "安娜现在住在上海", "アンナは東京から大阪に引っ越した", "アンナは今は大阪に住んでいる",
		"安娜从华为跳槽到小米", "会议推迟到五点", "安娜三月起在小米上班", "安娜的生日其实是五月三日", "安娜已经搬到上海", "アンナの家賃は8万円になりました", "会議は5時に延期です", "アンナは車を買い替えました", "訂正します、アンナの席は5階です",
	} {
		if s := signed(text)[0]; !s.changed {
			t.Errorf("%s", text)
		}
	}
	for _, text := range []string{"Anna lives in Berlin", "Anna wohnt in Berlin", "Anna habite à Lyon", "Anna vive en Sevilla", "Anna vive a Pisa", "安娜住在北京", "アンナは東京に住んでいる", "会议是五点", "安娜在小米上班", "アンナの家賃は8万円です", "アンナの席は5階です", "アンナは小さい家に住んでいます"} {
		if s := signed(text)[0]; s.changed {
			t.Errorf("%s", text)
		}
	}
}
